// pleat-bench ask: questions that people asked, answered by measurements. bench/ask/ has a file for each, to
// be read by whoever wants to know how it was measured.
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/ask/batchnorm_after_unfold.h"
#include "pleat/bench/ask/conv2d_vs_conv3d.h"
#include "pleat/bench/ask/faster_convolution.h"
#include "pleat/bench/ask/patches.h"
#include "pleat/bench/ask/unfold_speed.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

struct Question {
  const char* name;
  const char* words;
  ask::Answer (*answer)(const ask::AskOptions& options);
};

constexpr Question questions[] = {
    {"batchnorm-after-unfold", "Why does batch norm slow down when Conv2d is executed in unfolded fashion?",
     ask::batchnorm_after_unfold::ask},
    {"unfold-speed", "Can a convolution that is written with unfold and fold be made faster?",
     ask::unfold_speed::ask},
    {"conv2d-vs-conv3d", "Why is the backward of Conv2d faster than that of Conv3d?",
     ask::conv2d_vs_conv3d::ask},
    {"patches", "How is one filter bank best applied to many small patches?", ask::patches::ask},
    {"faster-convolution", "Is a convolution faster with TF32, and is it faster as unfold and a product?",
     ask::faster_convolution::ask},
};

class Ask : public Subcommand {
 public:
  std::string name() const override { return "ask"; }
  std::string summary() const override { return "answer a question that people asked; alone: list them"; }
  void add_options(CLI::App& app) override {
    app.add_option("question", question_, "which one")->check(not_empty());
  }

  void run(const CommonOptions& common, Report& report) override {
    if (question_.empty()) {
      std::string list = "Questions:";
      for (const Question& question : questions)
        list += fmt::format("\n  {:<24}{}", question.name, question.words);
      report.say(list);
      return;
    }
    const Question& question = find();
    report.say(fmt::format("{}: {}", question.name, question.words));
    if (common.threads > 0) set_num_threads(common.threads);
    for (const Device device : devices(common, report)) answer(question, device, common, report);
  }

  bool has_plot() const override { return !question_.empty(); }
  std::string plot(const std::vector<Record>&) const override { return plot_; }

 private:
  const Question& find() const {
    std::string names;
    for (const Question& question : questions) {
      if (question_ == question.name) return question;
      names += (names.empty() ? "" : ", ") + std::string(question.name);
    }
    fail<UsageError>("ask: there is no question \"{}\"; there are {}", question_, names);
  }

  /// The one that was named, else the CPU and a GPU.
  static std::vector<Device> devices(const CommonOptions& common, Report& report) {
    if (common.device != "auto") return {common.chosen_device()};
    if (cuda::is_available()) return {Device(), Device(DeviceType::cuda)};
    report.say("The part on CUDA is left out: " + cuda::unavailable_reason() + ". The CPU answers.");
    return {Device()};
  }

  void answer(const Question& question, Device device, const CommonOptions& common, Report& report) {
    CommonOptions here = common;
    here.device = pleat::name(device);
    ask::AskOptions options{.device = device, .quick = common.quick, .timer = here.timer()};
    if (!common.quick) {
      // A conclusion is worth more runs than a look.
      options.timer.min_blocks = 9;
      if (common.seconds == 0) options.timer.min_run_time = 0.5;
    }
    const ask::Answer answer = question.answer(options);
    std::string text = ask::text(answer);
    text.pop_back();  // say() ends the line
    report.say(fmt::format("On {}:\n{}", device, text));
    std::vector<Record> records;
    for (const ask::Timed& timed : answer.times)
      records.push_back(
          {.subcommand = name(),
           .labels = {{"question", question.name}, {"what", timed.what}, {"device", pleat::name(device)}},
           .time = timed.time});
    Record conclusion{
        .subcommand = name(),
        .labels = {{"question", question.name}, {"what", "conclusion"}, {"device", pleat::name(device)}}};
    for (std::size_t i = 0; i < answer.conclusion.size(); ++i)
      conclusion.set_detail(fmt::format("sentence_{}", i + 1), answer.conclusion[i]);
    records.push_back(std::move(conclusion));
    report.keep(records);
    plot_ = answer.plot;  // of a GPU, where there is one: it comes last
  }

  std::string question_;
  std::string plot_;
};

}  // namespace

SubcommandPointer make_ask() { return std::make_unique<Ask>(); }

}  // namespace pleat::bench
