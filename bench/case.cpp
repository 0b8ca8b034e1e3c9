#include "pleat/bench/case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include <CLI/CLI.hpp>

#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::bench {
namespace {

/// Runs a case until it throws for the first time, and keeps the reason: one that cannot go on must not end
/// those that it is timed with.
class Runner {
 public:
  explicit Runner(const Case& one) : case_(one) {
    attempt([&] { compute_ = one.prepare(one.operands); });
  }

  void run() {
    attempt([&] { (void)compute_(); });
  }
  void tune() { attempt(case_.tune); }
  std::vector<Tensor> results() const {
    const PrecisionScope scope(case_.precision);
    return compute_();
  }
  const std::string& failure() const { return failure_; }

 private:
  template <class Work>
  void attempt(const Work& work) {
    if (!failure_.empty()) return;
    const PrecisionScope scope(case_.precision);
    try {
      work();
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      failure_ = error.what();
    }
  }

  const Case& case_;
  Compute compute_;
  std::string failure_;
};

void add_rates(Record& record, const Case& one, const Ceilings& best) {
  const double seconds = record.time->median;
  if (one.flops > 0) {
    const double gflops = 1e-9 * one.flops / seconds;
    record.set_value("flops", one.flops);
    record.set_value("gflops", gflops);
    if (const auto peak = best.peak(one.dtype, one.precision))
      record.set_value("share_of_peak", gflops / *peak);
    if (one.bytes > 0) record.set_value("intensity", one.flops / one.bytes);
  }
  if (one.bytes > 0) {
    const double rate = 1e-9 * one.bytes / seconds;
    record.set_value("bytes", one.bytes);
    record.set_value("gbytes", rate);
    record.set_value("share_of_copy", rate / best.copy_bandwidth());
  }
}

std::vector<Tensor> exact_results(const Case& one) {
  if (one.exact) return one.exact();
  std::vector<Tensor> operands;
  for (const Tensor& operand : one.operands)
    operands.push_back(
        ops::to_device(is_floating(operand.dtype()) ? ops::cast(operand, float64) : operand, {}));
  return (one.reference ? one.reference : one.prepare)(operands)();
}

void add_error(Record& record, const Case& one, const Runner& runner) {
  try {
    const std::vector<Tensor> exact = exact_results(one), got = runner.results();
    double worst = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      worst = std::max(worst, relative_error(got.at(i), exact[i]));
    if (std::isfinite(worst))
      record.set_value("error", worst);
    else
      record.set_detail("error", "not finite");
  } catch (const OutOfMemoryError& error) {
    record.set_detail("not_checked", error.what());
  }
}

}  // namespace

std::vector<Record> measure(const std::vector<Case>& cases, const CommonOptions& common, bool check) {
  const benchmark::TimerOptions timer = common.timer();
  // Before the operands fill the caches, and never between two that are timed interleaved.
  const Ceilings& best = ceilings(timer.device);
  std::list<Runner> runners;
  std::vector<benchmark::Subject> subjects;
  for (const Case& one : cases) {
    Runner& runner = runners.emplace_back(one);
    if (!runner.failure().empty()) continue;
    subjects.push_back({.run = [&runner] { runner.run(); }});
    if (one.tune) subjects.back().tune = [&runner] { runner.tune(); };
  }
  std::vector<bool> ran;
  for (const Runner& runner : runners) ran.push_back(runner.failure().empty());
  const std::vector<benchmark::Measurement> measurements = benchmark::Timer(timer).measure_in_turns(subjects);

  std::vector<Record> records;
  auto runner = runners.begin();
  auto measured = measurements.begin();
  for (std::size_t i = 0; i < cases.size(); ++i, ++runner) {
    Record& record = records.emplace_back(cases[i].record);
    const auto own = ran[i] ? measured++ : measurements.end();
    record.failure = runner->failure();
    if (!record.failure.empty()) continue;
    record.time = Time(*own);
    add_rates(record, cases[i], best);
    if (check) add_error(record, cases[i], *runner);
    if (cases[i].finish) cases[i].finish(record);
  }
  return records;
}

std::vector<std::string> measured_columns(std::vector<std::string> labels) {
  labels.insert(labels.end(),
                {"median", "quartiles", "runs", "first_call", "gflops", "gflops_valid", "share_of_peak",
                 "gbytes", "share_of_copy", "workspace_bytes", "error", "bad_error"});
  return labels;
}

double relative_error(const Tensor& got, const Tensor& exact) {
  pleat::check<ShapeError>(got.shape() == exact.shape(),
                           "relative_error: shapes must be equal, got {} and {}", got.shape(), exact.shape());
  const auto plain = [](const Tensor& t) { return ops::cast(ops::to_device(t, Device()), float64); };
  const auto length = [](const Tensor& t) { return ops::norm(t).item<double>(); };
  const double all = length(plain(exact)), difference = length(ops::subtract(plain(got), plain(exact)));
  const double error = all > 0 ? difference / all : difference;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed) {
  manual_seed(seed);
  Tensor x = ops::cast(randn(shape, {.device = kind.device}), parse_dtype(kind.dtype));
  // A format says something about images only.
  if (!kind.format.empty() && shape.size() >= 3 && shape.size() <= 5)
    x = ops::to_format(x, parse_format(kind.format));
  return x;
}

std::vector<OperandKind> OperandOptions::kinds(Device device) const {
  std::vector<OperandKind> all;
  for (const std::string& dtype : dtypes)
    for (const std::string& format : formats) all.push_back({dtype, format, device});
  return all;
}

void add_operand_options(CLI::App& app, OperandOptions& options, With with) {
  const bool of_conv = with == With::conv_format_and_precision;
  add_list(app, "--dtype", options.dtypes, "types of the operands, separated by commas",
           {"float64", "float32", "bfloat16", "float16"});
  if (of_conv) options.formats = {"auto"};
  if (of_conv)
    add_list(
        app, "--format", options.formats,
        "memory formats of images, on CUDA of what convolutions give, too, separated by commas; auto: what "
        "Pleat chooses",
        {"auto", "contiguous", "channels_last"});
  else if (with == With::format)
    add_list(app, "--format", options.formats, "memory formats of the operands, separated by commas",
             {"contiguous", "channels_last"});
  if (of_conv || with == With::precision)
    app.add_option("--precision", options.precision,
                   "of float32 on CUDA: highest is true float32, high TF32 inside, medium bfloat16 inside")
        ->check(CLI::IsMember({"highest", "high", "medium"}))
        ->capture_default_str();
  app.add_flag("--check", options.check, "the error against float64, beside the time");
}

Case make_case(const std::string& subcommand, const std::string& problem, const Record::Texts& labels,
               const OperandKind& kind) {
  Case one{.record = {.subcommand = subcommand, .labels = {{"problem", problem}}},
           .dtype = parse_dtype(kind.dtype),
           .prepare = {}};
  Record::Texts& all = one.record.labels;
  all.insert(all.end(), labels.begin(), labels.end());
  all.emplace_back("dtype", kind.dtype);
  if (!kind.format.empty()) all.emplace_back("format", kind.format);
  all.emplace_back("device", name(kind.device));
  return one;
}

void OperationSubcommand::run(const CommonOptions& common, Report& report) {
  Layout shown = layout();
  if (shown.heading.empty()) {
    shown.heading = {"problem"};
    shown.columns.insert(shown.columns.end(), {"dtype", "format"});
  }
  shown.columns = measured_columns(shown.columns);
  std::vector<Record> table;
  bool first = true;
  list(common, [&](const std::vector<Case>& cases, bool ends_table) {
    if (std::exchange(first, false)) {
      report.set_layout(shown);
      begin(common, report);
    }
    std::vector<Record> records = measure(cases, common, operands_.check);
    filter(records);
    table.insert(table.end(), records.begin(), records.end());
    if (ends_table) report.add(std::exchange(table, {}));
  });
}

std::vector<Shape> OperationSubcommand::shapes(const CommonOptions& common,
                                               const std::vector<std::string>& usual,
                                               const std::vector<std::string>& quick,
                                               const std::string& option) const {
  std::vector<Shape> result;
  for (const std::string& text : !shapes_.empty() ? shapes_ : common.quick ? quick : usual)
    result.push_back(parse_sizes(name() + ": " + option, text));
  return result;
}

}  // namespace pleat::bench
