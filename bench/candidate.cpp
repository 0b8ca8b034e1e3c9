#include "pleat/bench/candidate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/ceilings.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/relative_error.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/examples/common/options.h"
#include "pleat/profile/timer.h"

namespace pleat::bench {
namespace {

const std::vector<std::string> dtype_names = {"float64", "float32", "bfloat16", "float16"};
const std::vector<std::string> format_names = {"contiguous", "channels_last"};
const std::vector<std::string> precision_names = {"highest", "high", "medium"};

Tensor in_float64(const Tensor& x) { return ops::to_device(ops::cast(x, DType::float64), {}); }

/// Runs a candidate until it throws for the first time, and keeps the reason. (Timed are all in turns: one
/// that cannot go on must not end the others.)
class Runner {
 public:
  explicit Runner(const Candidate& candidate) : candidate_(candidate) {
    guarded([&] { compute_ = candidate.prepare(candidate.operands); });
  }

  void run() {
    if (failure_.empty()) guarded([&] { (void)compute_(); });
  }
  std::vector<Tensor> results() {
    const PrecisionScope scope(candidate_.precision);
    return compute_();
  }
  const std::string& failure() const { return failure_; }

 private:
  template <class Work>
  void guarded(const Work& work) {
    const PrecisionScope scope(candidate_.precision);
    try {
      work();
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      failure_ = error.what();
      compute_ = {};
    }
  }

  const Candidate& candidate_;
  Compute compute_;
  std::string failure_;
};

void add_rates(Record& record, const Candidate& candidate, Device device) {
  const Ceilings& best = ceilings(device);
  const double seconds = record.time->median;
  if (candidate.flops > 0) {
    const double gflops = 1e-9 * candidate.flops / seconds;
    record.set_value("flops", candidate.flops);
    record.set_value("gflops", gflops);
    if (const auto peak = best.peak(candidate.operands.front().dtype(), candidate.precision))
      record.set_value("share_of_peak", gflops / *peak);
    if (candidate.bytes > 0) record.set_value("intensity", candidate.flops / candidate.bytes);
  }
  if (candidate.bytes > 0) {
    const double rate = 1e-9 * candidate.bytes / seconds;
    record.set_value("bytes", candidate.bytes);
    record.set_value("gbytes", rate);
    record.set_value("share_of_copy", rate / best.copy_bandwidth());
  }
}

void add_error(Record& record, const Candidate& candidate, Runner& runner) {
  std::vector<Tensor> exact;
  for (const Tensor& operand : candidate.operands)
    exact.push_back(is_floating(operand.dtype()) ? in_float64(operand) : ops::to_device(operand, {}));
  const std::vector<Tensor> wanted = (candidate.reference ? candidate.reference : candidate.prepare)(exact)();
  const std::vector<Tensor> got = runner.results();
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    worst = std::max(worst, relative_error(got.at(i), wanted[i]));
  if (!std::isfinite(worst))
    record.set_detail("error", "not finite");
  else
    record.set_value("error", worst);
}

}  // namespace

Precision OperandOptions::chosen_precision() const { return parse_precision(precision); }

void add_dtype_option(CLI::App& app, OperandOptions& options) {
  add_list(app, "--dtype", options.dtypes, "types of the operands, separated by commas", dtype_names);
}

void add_format_option(CLI::App& app, OperandOptions& options) {
  add_list(app, "--format", options.formats, "memory formats of the operands, separated by commas",
           format_names);
}

void add_conv_format_option(CLI::App& app, OperandOptions& options) {
  options.formats = {"auto"};
  add_list(
      app, "--format", options.formats,
      "memory formats of images, on CUDA of what convolutions give, too, separated by commas; auto: what "
      "Pleat chooses",
      {"auto", "contiguous", "channels_last"});
}

void add_precision_option(CLI::App& app, OperandOptions& options) {
  app.add_option("--precision", options.precision,
                 "of float32 on CUDA: highest is true float32, high TF32 inside, medium bfloat16 inside")
      ->check(CLI::IsMember(precision_names))
      ->capture_default_str();
}

void add_check_option(CLI::App& app, OperandOptions& options) {
  app.add_flag("--check", options.check, "the error against float64, beside the time");
}

Tensor operand(const Shape& shape, DType dtype, Device device, const std::string& format, uint64_t seed) {
  manual_seed(seed);
  Tensor x = ops::cast(randn(shape, {.device = device}), dtype);
  // A format says something about images only.
  if (shape.size() >= 3 && shape.size() <= 5) x = ops::to_format(x, parse_format(format));
  return x;
}

std::vector<Record> measure(const std::string& subcommand, const std::vector<Candidate>& candidates,
                            const CommonOptions& common, bool check) {
  const benchmark::TimerOptions timer = common.timer();
  // Before the operands fill the caches, and never between two of those who are timed in turns.
  (void)ceilings(timer.device);
  std::vector<Record> records;
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<benchmark::Subject> subjects;
  std::vector<std::size_t> timed;  // whose subject it is
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    records.push_back({.subcommand = subcommand, .labels = candidates[i].labels});
    runners.push_back(std::make_unique<Runner>(candidates[i]));
    if (!runners[i]->failure().empty()) continue;
    timed.push_back(i);
    subjects.push_back({.run = [runner = runners[i].get()] { runner->run(); }});
  }
  std::vector<benchmark::Measurement> measurements;
  if (!subjects.empty()) measurements = benchmark::Timer(timer).measure_in_turns(subjects);

  for (std::size_t t = 0; t < timed.size(); ++t) {
    const std::size_t i = timed[t];
    if (!runners[i]->failure().empty()) continue;
    records[i].time = Time(measurements[t]);
    add_rates(records[i], candidates[i], timer.device);
    if (check) add_error(records[i], candidates[i], *runners[i]);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) records[i].failure = runners[i]->failure();
  return records;
}

std::vector<Column> measured_columns() {
  return {median_column(),
          quartiles_column(),
          runs_column(),
          first_call_column(),
          value_column("GFLOP/s", "gflops"),
          percent_column("of peak", "share_of_peak"),
          value_column("GB/s", "gbytes"),
          percent_column("of copy", "share_of_copy"),
          exponent_column("error", "error"),
          detail_column("", "error")};
}

}  // namespace pleat::bench
