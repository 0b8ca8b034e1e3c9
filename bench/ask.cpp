// pleat-bench ask: questions that people asked, answered by measurements. bench/ask/ has a file for each, to
// be read by whoever wants to know how it was measured.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

struct Question {
  std::string name;
  const char* words;
  ask::Answer (*answer)(const ask::AskOptions& options);
};

const Question questions[] = {
    {"batchnorm-after-unfold", "Why does batch norm slow down when Conv2d is executed in unfolded fashion?",
     ask::batchnorm_after_unfold},
    {"unfold-speed", "Can a convolution that is written with unfold and fold be made faster?",
     ask::unfold_speed},
    {"conv2d-vs-conv3d", "Why is the backward of Conv2d faster than that of Conv3d?", ask::conv2d_vs_conv3d},
    {"patches", "How is one filter bank best applied to many small patches?", ask::patches},
    {"faster-convolution", "Is a convolution faster with TF32, and is it faster as unfold and a product?",
     ask::faster_convolution},
};

const Layout layout{
    .heading = {"problem", "pass"},
    .columns = {"way", "piece", "median", "quartiles", "beside", "first_call", "error", "bad_error"}};

class Ask : public Subcommand {
 public:
  Ask() : Subcommand("ask", "answer a question that people asked; alone: list them") {}

  void add_options(CLI::App& app) override {
    app.add_option("question", question_, "which one")->check(not_empty());
  }

  void run(const CommonOptions& common, Report& report) override {
    std::string list = "Questions:", names;
    const Question* chosen = nullptr;
    for (const Question& question : questions) {
      list += fmt::format("\n  {:<24}{}", question.name, question.words);
      names += (names.empty() ? "" : ", ") + question.name;
      if (question.name == question_) chosen = &question;
    }
    if (question_.empty()) return report.say(list);
    check<UsageError>(chosen != nullptr, "ask: there is no question \"{}\"; there are {}", question_, names);
    report.say(fmt::format("{}: {}", chosen->name, chosen->words));
    if (common.threads > 0) set_num_threads(common.threads);
    // The device that was named, else the CPU and a GPU.
    std::vector<Device> devices{common.device == "auto" ? Device() : common.chosen_device()};
    if (common.device == "auto" && cuda::is_available())
      devices.emplace_back(DeviceType::cuda);
    else if (common.device == "auto")
      report.say("The part on CUDA is left out: " + cuda::unavailable_reason() +
                 ". What follows is measured on the CPU.");
    for (const Device device : devices) answer(*chosen, device, common, report);
  }

  bool has_plot() const override { return !question_.empty(); }
  std::string plot(const std::vector<Record>&) const override { return plot_; }

 private:
  void answer(const Question& question, Device device, const CommonOptions& common, Report& report) {
    CommonOptions here = common;
    here.device = pleat::name(device);
    ask::AskOptions options{.device = device, .quick = common.quick, .timer = here.timer()};
    options.timer.min_blocks = 9;  // fewer leave a ratio wide
    // A conclusion is worth more runs than a look.
    if (!common.quick && common.seconds == 0) options.timer.min_run_time = 0.5;
    ask::Answer answer = question.answer(options);
    answer.times.set_ratios();
    std::string setup = fmt::format("On {}:", device),
                conclusion = "Conclusion (in brackets: between which a ratio lies with 99 % confidence)";
    for (const std::string& line : answer.setup) setup += '\n' + line;
    report.say(setup + (common.quick ? "\nSmall sizes (--quick), for a first look." : ""));
    const auto show = [&](std::string text) {
      text.pop_back();  // say() ends the line
      report.say(text);
    };
    for (const std::string& problem : answer.times.values("problem")) {
      const ask::Times times = answer.times.only("problem", {problem});
      for (const std::string& pass : times.values("pass"))
        show(table(times.only("pass", {pass}).records, layout, report.color()));
    }
    for (const std::string& note : answer.notes) show(note);
    for (const std::string& sentence : answer.conclusion) conclusion += "\n- " + sentence;
    report.say(conclusion);
    ask::Strings reasons = answer.times.reasons();
    if (reasons.empty()) reasons.emplace_back("all ways take as long as each other");
    report.say(fmt::format("Why (counted by the profiler in one run of the slowest and of the fastest)\n- {}",
                           fmt::join(reasons, "\n- ")));

    std::vector<Record> records = answer.times.records;
    const auto describe = [&](Record& record, const std::string& what) {
      record.subcommand = name();
      record.labels = {{"question", question.name}, {"what", what}, {"device", pleat::name(device)}};
    };
    for (Record& record : records) describe(record, label_text(record, {"problem", "way", "pass", "piece"}));
    describe(records.emplace_back(), "conclusion");
    for (std::size_t i = 0; i < answer.conclusion.size(); ++i)
      records.back().set_detail(fmt::format("sentence_{}", i + 1), answer.conclusion[i]);
    for (std::size_t i = 0; i < reasons.size(); ++i)
      records.back().set_detail(fmt::format("why_{}", i + 1), reasons[i]);
    report.keep(records);
    plot_ = answer.plot;  // of a GPU, where there is one: it comes last
  }

  std::string question_;
  std::string plot_;
};

}  // namespace

SubcommandPointer make_ask() { return std::make_unique<Ask>(); }

}  // namespace pleat::bench
