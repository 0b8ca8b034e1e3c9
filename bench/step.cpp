// pleat-bench step: a training step of a network, part by part.
#include <algorithm>
#include <array>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/candidate.h"
#include "pleat/bench/ceilings.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"
#include "pleat/bench/training_step.h"
#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/examples/common/cifar_models.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/profile/profiler.h"
#include "pleat/profile/timer.h"

namespace pleat::bench {
namespace {

struct Part {
  const char* name;
  void (TrainingStep::*run)();
};
constexpr std::array<Part, 5> parts{{{"data", &TrainingStep::data},
                                     {"forward", &TrainingStep::forward},
                                     {"loss", &TrainingStep::loss},
                                     {"backward", &TrainingStep::backward},
                                     {"optimiser", &TrainingStep::optimize}}};
constexpr const char* whole_name = "step";

/// Operations that the ranges inside of `work` state: those of convolutions and matrix products.
double flops_of(const std::function<void()>& work) {
  profile::Profiler profiler({.activities = profile::Activities::cpu, .with_flops = true});
  work();
  profiler.stop();
  double flops = 0;
  for (const profile::KeyAverage& row : profiler.profile().key_averages().rows) flops += row.flops;
  return flops;
}

/// The times of a step in one go and in parts, taken in turns: between parts the device is waited for, which
/// costs what it would have done meanwhile.
struct StepTimes {
  benchmark::Measurement whole;
  std::array<benchmark::Measurement, parts.size()> split;
};

StepTimes time_step(TrainingStep& step, const benchmark::TimerOptions& options) {
  const auto clock = options.clock ? options.clock : benchmark::device_clock(options.device);
  StepTimes times;
  const auto take = [&](benchmark::Measurement& measurement, const auto& work, bool first) {
    if (options.cold_cache) clock->empty_caches();
    clock->start();
    work();
    const benchmark::Clock::Elapsed elapsed = clock->stop();
    if (first) {
      measurement.device = options.device;
      measurement.threads = options.threads > 0 ? options.threads : num_threads();
      measurement.cold_cache = options.cold_cache;
      measurement.first_call = elapsed.wall;
      return elapsed.wall;
    }
    measurement.wall_times.push_back(elapsed.wall);
    measurement.times.push_back(elapsed.device.value_or(elapsed.wall));
    return elapsed.wall;
  };
  const auto whole = [&](bool first) {
    return take(
        times.whole,
        [&] {
          for (const Part& part : parts) (step.*part.run)();
        },
        first);
  };
  const auto split = [&](bool first) {
    double seconds = 0;
    for (std::size_t p = 0; p < parts.size(); ++p)
      seconds += take(
          times.split[p], [&] { (step.*parts[p].run)(); }, first);
    return seconds;
  };
  // The first step of all is told by parts; a second one warms up what the first has left behind.
  const double first = split(true);
  (void)whole(true);
  times.whole.first_call = first;
  double total = 0;
  for (int64_t round = 0; round < options.min_blocks || total < 2 * options.min_run_time; ++round)
    total += round % 2 == 0 ? whole(false) + split(false) : split(false) + whole(false);
  return times;
}

class Step : public Subcommand {
 public:
  std::string name() const override { return "step"; }
  std::string summary() const override {
    return "a training step of a network: data, forward, loss, backward, optimiser";
  }

  void add_options(CLI::App& app) override {
    add_list(app, "--model", models_, "networks, separated by commas", model_names());
    add_list(app, "--batch-size", batch_sizes_, "images a step, several separated by commas");
    app.add_option("--optimizer", optimizer_, "sgd (with momentum and weight decay) or adam")
        ->check(CLI::IsMember({"sgd", "adam"}))
        ->capture_default_str();
    app.add_option("--workers", workers_, "threads that prepare batches ahead; 0: nothing of it is hidden")
        ->transform(whole_number(0, 256))
        ->capture_default_str();
    add_list(app, "--implementation", implementations_,
             "of all convolutions, several separated by commas; auto: what Pleat chooses");
    add_dtype_option(app, operands_);
    app.get_option("--dtype")->description("types, separated by commas; half types: mixed precision");
    add_conv_format_option(app, operands_);
    add_precision_option(app, operands_);
    add_check_option(app, operands_);
  }

  void run(const CommonOptions& common, Report& report) override {
    check_implementations(common.chosen_device());
    std::vector<int64_t> batch_sizes;
    for (const std::string& size : batch_sizes_)
      batch_sizes.push_back(parse_count("step: --batch-size", size));
    if (batch_sizes.empty()) batch_sizes = {common.quick ? 16 : 128};
    report.set_layout(
        {.heading = {"problem"},
         .columns = {label_column("part", "part"), median_column(), percent_column("share", "share"),
                     quartiles_column(), runs_column(), first_call_column(),
                     value_column("GFLOP/s", "gflops"), percent_column("of peak", "share_of_peak"),
                     value_column("images/s", "images_per_s", 1, 4), exponent_column("error", "error")},
         .race = {}});
    for (const std::string& model : models_)
      for (const std::string& implementation : implementations_)
        for (const std::string& dtype : operands_.dtypes)
          for (const std::string& format : operands_.formats)
            for (const int64_t batch_size : batch_sizes)
              report.add(records({.model = model,
                                  .batch_size = batch_size,
                                  .optimizer = optimizer_,
                                  .dtype = dtype,
                                  .format = format,
                                  .workers = workers_,
                                  .device = common.chosen_device()},
                                 implementation, common));
  }

  bool has_plot() const override { return true; }
  /// Lines of whole steps over the batch size where there are several, else bars of the parts.
  std::string plot(const std::vector<Record>& records) const override {
    if (batch_sizes_.size() > 1) {
      std::vector<Record> whole;
      std::copy_if(records.begin(), records.end(), std::back_inserter(whole),
                   [](const Record& record) { return record.label("part") == whole_name; });
      return time_lines({.title = "Training step",
                         .x_value = "batch_size",
                         .x_axis = "batch size",
                         .series = {"model", "implementation", "dtype", "format"}},
                        whole);
    }
    std::vector<Record> by_part = records;
    for (Record& record : by_part) record.set_label("problem", record.label("part"));
    return time_bars(with_common_labels("Training step", records, {"problem"}), by_part,
                     {"model", "implementation", "dtype", "format"});
  }

 private:
  void check_implementations(Device device) const {
    const std::vector<std::string> known = ops::conv_implementations(device);
    for (const std::string& wish : implementations_)
      check<UsageError>(wish == "auto" || std::find(known.begin(), known.end(), wish) != known.end(),
                        "step: --implementation: must be auto or one of {}, got \"{}\"",
                        fmt::join(known, ", "), wish);
  }

  std::vector<Record> records(const TrainingStepOptions& options, const std::string& implementation,
                              const CommonOptions& common) const {
    const Precision precision = operands_.chosen_precision();
    const PrecisionScope precision_scope(precision);
    ConvPolicyOptions conv{.implementation = implementation == "auto" ? "" : implementation};
    if (options.device.is_cuda() && options.format != "auto") conv.format = parse_format(options.format);
    const ConvPolicy policy(conv);
    const auto record = [&](const std::string& part) {
      Record result{.subcommand = name(),
                    .labels = {{"problem", problem(options, implementation)},
                               {"part", part},
                               {"model", options.model},
                               {"implementation", implementation},
                               {"dtype", options.dtype},
                               {"format", options.format},
                               {"device", pleat::name(options.device)}}};
      result.set_value("batch_size", static_cast<double>(options.batch_size));
      return result;
    };
    std::vector<Record> results;
    try {
      const auto best = ceilings(options.device).peak(parse_dtype(options.dtype), precision);
      TrainingStep step(options);
      const StepTimes times = time_step(step, common.timer());
      std::array<double, parts.size()> flops{};
      for (std::size_t p = 0; p < parts.size(); ++p) flops[p] = flops_of([&] { (step.*parts[p].run)(); });
      double sum = 0, all_flops = 0;
      for (const benchmark::Measurement& part : times.split) sum += part.median();
      const auto add = [&](const std::string& part, const benchmark::Measurement& measured,
                           double operations) {
        Record& result = results.emplace_back(record(part));
        result.time = Time(measured);
        if (operations > 0) {
          result.set_value("gflops", 1e-9 * operations / measured.median());
          if (best) result.set_value("share_of_peak", 1e-9 * operations / measured.median() / *best);
        }
      };
      for (std::size_t p = 0; p < parts.size(); ++p) {
        add(parts[p].name, times.split[p], flops[p]);
        results.back().set_value("share", times.split[p].median() / sum);
        all_flops += flops[p];
      }
      add(whole_name, times.whole, all_flops);
      results.back().set_value("images_per_s",
                               static_cast<double>(options.batch_size) / times.whole.median());
      if (operands_.check) results.back().set_value("error", step.gradient_error());
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      results = {record(whole_name)};
      results.back().failure = error.what();
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

  std::vector<std::string> models_ = {"resnet20"};
  std::vector<std::string> batch_sizes_;
  std::string optimizer_ = "sgd";
  int workers_ = 0;
  std::vector<std::string> implementations_ = {"auto"};
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_step() { return std::make_unique<Step>(); }

}  // namespace pleat::bench
