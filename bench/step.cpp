// pleat-bench step: a training step of a network, part by part.
#include <functional>

#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/training_step.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/models/make_classifier.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

/// A part of a step, or all of it, on its way to a record.
struct Part {
  std::string name;
  std::function<void()> run;
  benchmark::Measurement measured = {};
};

/// Operations that the ranges inside of `work` state: those of convolutions and matrix products.
double flops_of(const std::function<void()>& work) {
  profile::Profiler profiler({.activities = profile::Activities::cpu, .with_flops = true});
  work();
  profiler.stop();
  double flops = 0;
  for (const profile::KeyAverage& row : profiler.profile().key_averages().rows) flops += row.flops;
  return flops;
}

/// Times the parts of a step, and behind them the step in one go, interleaved: between parts the device is
/// waited for, which costs what it would have done meanwhile.
std::vector<Part> time_step(TrainingStep& step, const benchmark::TimerOptions& options) {
  std::vector<Part> parts{{"data", [&] { step.data(); }},
                          {"forward", [&] { step.forward(); }},
                          {"loss", [&] { step.loss(); }},
                          {"backward", [&] { step.backward(); }},
                          {"optimiser", [&] { step.optimize(); }}};
  const auto run_all = [parts] {
    for (const Part& part : parts) part.run();
  };
  const auto clock = benchmark::device_clock(options.device);
  const auto run_apart = [&] {
    for (Part& part : parts) {
      if (options.cold_cache) clock->empty_caches();
      clock->start();
      part.run();
      const auto [wall, device] = clock->stop();
      part.measured.wall_times.push_back(wall);
      part.measured.times.push_back(device.value_or(wall));
    }
  };
  const auto measured = benchmark::Timer(options).measure_in_turns({{.run = run_apart}, {.run = run_all}});
  for (Part& part : parts) {
    part.measured.first_call = part.measured.wall_times.front();
    for (std::vector<double>* times : {&part.measured.times, &part.measured.wall_times})
      times->erase(times->begin(), times->end() - measured[0].runs());  // first call and warm-up
    part.measured.threads = measured[0].threads;
    part.measured.cold_cache = measured[0].cold_cache;
  }
  parts.push_back({"step", run_all, measured[1]});
  parts.back().measured.first_call = measured[0].first_call;  // that of the first step of all
  return parts;
}

class Step : public Subcommand {
 public:
  Step() : Subcommand("step", "a training step of a network: data, forward, loss, backward, optimiser") {
    operands_.formats = {"auto"};
    operands_.precision = "highest";
  }

  void add_options(CLI::App& app) override {
    add_list(app, "--model", models_, "networks, separated by commas", models::classifier_names());
    add_list(app, "--batch-size", batch_sizes_, "images a step, several separated by commas");
    add_choice(app, "--optimizer", optimizer_, {"sgd", "adam"},
               "sgd (with momentum and weight decay) or adam");
    add_number(app, "--workers", workers_, 0,
               "threads that prepare batches ahead; 0: nothing of it is hidden", 256);
    add_list(app, "--implementation", implementations_,
             "of all convolutions, several separated by commas; auto: what Pleat chooses");
    add_operand_options(app, operands_);
    app.get_option("--dtype")->description("types, separated by commas; half types: mixed precision");
  }

  void run(const CommonOptions& common, Report& report) override {
    const Device device = common.chosen_device();
    for (const std::string& name : implementations_)
      if (name != "auto")
        check_known("step: --implementation: must be auto or one of", name,
                    ops::conv_implementations(device));
    std::vector<int64_t> batch_sizes;
    for (const std::string& size : batch_sizes_)
      batch_sizes.push_back(parse_count("step: --batch-size", size));
    if (batch_sizes.empty()) batch_sizes = {common.quick ? 16 : 128};
    report.set_layout({.heading = {"problem"},
                       .columns = {"part", "median", "share", "quartiles", "runs", "first_call", "gflops",
                                   "share_of_peak", "images_per_s", "error"}});
    for (const std::string& model : models_)
      for (const std::string& implementation : implementations_)
        for (const OperandKind& kind : operands_.kinds(device))
          for (const int64_t batch_size : batch_sizes)
            report.add(measure_step({.model = model,
                                     .batch_size = batch_size,
                                     .optimizer = optimizer_,
                                     .dtype = kind.dtype,
                                     .format = kind.format,
                                     .workers = static_cast<int>(workers_),
                                     .device = device},
                                    implementation, common));
  }

  bool has_plot() const override { return true; }
  /// Lines of whole steps over the batch size where there are several, else bars of the parts.
  std::string plot(const std::vector<Record>& records) const override {
    const TimeChart chart{.title = "Training step",
                          .series = {"model", "implementation", "dtype", "format"},
                          .groups = {"part"},
                          .x_value = "batch_size",
                          .x_axis = "batch size"};
    if (batch_sizes_.size() < 2) return time_bars(chart, records);
    std::vector<Record> whole = records;
    std::erase_if(whole, [](const Record& record) { return record.label("part") != "step"; });
    return time_lines(chart, whole);
  }

 private:
  std::vector<Record> measure_step(const TrainingStepOptions& options, const std::string& implementation,
                                   const CommonOptions& common) const {
    const Precision precision = precisions.at(operands_.precision);
    const PrecisionScope precision_scope(precision);
    ConvPolicyOptions conv{.implementation = implementation == "auto" ? "" : implementation};
    if (options.device.is_cuda() && options.format != "auto") conv.format = formats.at(options.format);
    const ConvPolicy policy(conv);
    const auto record = [&](const std::string& part) {
      Case one = make_case(name(), problem(options, implementation),
                           {{"part", part}, {"model", options.model}, {"implementation", implementation}},
                           {options.dtype, options.format, options.device});
      one.record.set_value("batch_size", static_cast<double>(options.batch_size));
      return one.record;
    };
    std::vector<Record> results;
    try {
      const auto best = ceilings(options.device).peak(dtypes.at(options.dtype), precision);
      TrainingStep step(options);
      const std::vector<Part> parts = time_step(step, common.timer());
      double sum = 0;  // of the parts
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) sum += parts[p].measured.median();
      for (const Part& part : parts) {
        Record& result = results.emplace_back(record(part.name));
        result.time = Time(part.measured);
        const double flops = flops_of(part.run), gflops = 1e-9 * flops / result.time->median;
        if (flops > 0) result.set_value("gflops", gflops);
        if (flops > 0 && best) result.set_value("share_of_peak", gflops / *best);
        if (results.size() < parts.size()) result.set_value("share", result.time->median / sum);
      }
      Record& whole = results.back();
      whole.set_value("images_per_s", static_cast<double>(options.batch_size) / whole.time->median);
      if (operands_.check) whole.set_value("error", step.gradient_error());
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      results = {record("step")};
      results[0].failure = error.what();
    }
    return results;
  }

  /// Whatever is not as usual is named.
  std::string problem(const TrainingStepOptions& options, const std::string& implementation) const {
    std::string text =
        fmt::format("{} n{} {} {}", options.model, options.batch_size, options.optimizer, options.dtype);
    if (options.format != "auto") text += " " + options.format;
    if (operands_.precision != "highest") text += " precision " + operands_.precision;
    if (implementation != "auto") text += " " + implementation;
    if (options.workers > 0) text += fmt::format(" workers {}", options.workers);
    return text;
  }

  std::vector<std::string> models_ = {"resnet20"}, batch_sizes_, implementations_ = {"auto"};
  std::string optimizer_ = "sgd";
  int64_t workers_ = 0;
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_step() { return std::make_unique<Step>(); }

}  // namespace pleat::bench
