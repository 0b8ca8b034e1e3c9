// pleat-bench ask: questions that people asked, answered by measurements. bench/ask/ has a file for each, to
// be read by whoever wants to know how it was measured.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

struct Question {
  std::string name;
  const char* words;
  void (*answer)(ask::Compare& compare);
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

class Ask : public Subcommand {
 public:
  Ask() : Subcommand("ask", "answer a question that people asked; alone: list them") {}

  void add_options(CLI::App& app) override {
    app.add_option("question", question_, "which one")->check(not_empty());
  }

  void run(const CommonOptions& common, Report& report) override {
    std::string list = "Questions:";
    std::vector<std::string> names;
    for (const Question& question : questions) {
      list += fmt::format("\n  {:<24}{}", question.name, question.words);
      names.push_back(question.name);
    }
    if (question_.empty()) return report.say(list);
    check_known("ask: there are", question_, names);
    const Question& chosen =
        *std::find_if(std::begin(questions), std::end(questions),
                      [&](const Question& question) { return question.name == question_; });
    report.set_layout({.heading = {"problem", "pass"},
                       .columns = {"way", "median", "quartiles", "beside", "first_call", "error"}});
    report.say(fmt::format("{}: {}", chosen.name, chosen.words));
    // The device that was named, else the CPU and a GPU.
    std::vector<Device> devices{common.device == "auto" ? Device() : common.chosen_device()};
    if (common.device == "auto" && cuda::is_available())
      devices.emplace_back(DeviceType::cuda);
    else if (common.device == "auto")
      report.say("The part on CUDA is left out: " + cuda::unavailable_reason() +
                 ". What follows is measured on the CPU.");
    for (const Device device : devices) answer(chosen, device, common, report);
  }

 private:
  void answer(const Question& question, Device device, const CommonOptions& common, Report& report) {
    CommonOptions here = common;
    here.device = pleat::name(device);
    ask::AskOptions options{.device = device, .quick = common.quick, .timer = here.timer()};
    options.timer.min_blocks = 9;  // fewer leave a ratio wide
    // A conclusion is worth more runs than a look.
    if (!common.quick && common.seconds == 0) options.timer.min_run_time = 0.5;
    ask::Compare compare(options);
    question.answer(compare);
    report.say(fmt::format("On {}:\n{}{}", device, fmt::join(compare.setup, "\n"),
                           common.quick ? "\nSmall sizes (--quick), for a first look." : ""));
    for (const std::vector<Record>& block : compare.blocks()) report.add(block);
    const auto list = [&](const std::string& title, const ask::Strings& sentences) {
      report.say(fmt::format("{}\n- {}", title, fmt::join(sentences, "\n- ")));
      Record record{.subcommand = name(), .labels = {{"problem", title}, {"device", pleat::name(device)}}};
      for (std::size_t i = 0; i < sentences.size(); ++i)
        record.set_detail(fmt::format("sentence_{}", i + 1), sentences[i]);
      report.keep({record});
    };
    list("Conclusion (in brackets: between which a ratio lies with 99 % confidence)", compare.conclusion());
    ask::Strings reasons = compare.reasons();
    if (reasons.empty()) reasons.emplace_back("all ways take as long as each other");
    list("Why (counted by the profiler in one run of the slowest and of the fastest)", reasons);
  }

  std::string question_;
};

}  // namespace

SubcommandPointer make_ask() { return std::make_unique<Ask>(); }

}  // namespace pleat::bench
