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
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/reduce/reduce_kernels.h"

namespace pleat::bench {
namespace {

/// A case on the way to its record. It runs until it throws for the first time, and the record says why: one
/// that cannot go on must not end those that it is timed with.
struct Runner {
  const Case& one;
  Record record;
  Compute compute;

  explicit Runner(const Case& c) : one(c), record(c.record) {
    attempt([&] { compute = one.prepare(one.operands); });
  }
  bool failed() const { return !record.failure.empty(); }

  template <class Work>
  void attempt(const Work& work) {
    if (failed()) return;
    const PrecisionScope scope(one.precision);
    try {
      work();
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      record.failure = error.what();
    }
  }

  Tensors results() const {
    const PrecisionScope scope(one.precision);
    return compute();
  }
};

void add_rates(Runner& runner, const Ceilings& best) {
  const Case& one = runner.one;
  Record& record = runner.record;
  const double giga = 1e-9 / record.time->median;
  const double bytes = one.bytes ? *one.bytes : bytes_of(one.operands) + bytes_of(runner.results());
  if (one.flops > 0) {
    record.set_value("flops", one.flops);
    record.set_value("gflops", giga * one.flops);
    if (const auto peak = best.peak(one.dtype, one.precision))
      record.set_value("share_of_peak", giga * one.flops / *peak);
    if (bytes > 0) record.set_value("intensity", one.flops / bytes);
  }
  if (bytes > 0) {
    record.set_value("bytes", bytes);
    record.set_value("gbytes", giga * bytes);
    record.set_value("share_of_copy", giga * bytes / best.copy_bandwidth());
  }
}

Tensors exact_results(const Case& one) {
  Tensors operands;
  for (const Tensor& operand : one.operands) operands.push_back(as_kind(operand, {.dtype = "float64"}));
  return (one.reference ? one.reference : one.prepare)(operands)();
}

void add_error(Runner& runner) {
  try {
    const Tensors exact = exact_results(runner.one), got = runner.results();
    double worst = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      worst = std::max(worst, relative_error(got.at(i), exact[i]));
    runner.record.set_value("error", worst);  // not when it is not finite
    if (!std::isfinite(worst)) runner.record.set_detail("error", "not finite");
  } catch (const OutOfMemoryError& error) {
    runner.record.set_detail("not_checked", error.what());
  }
}

}  // namespace

Prepare function_of(std::function<Tensors(const Tensors&)> function) {
  return [function = std::move(function)](const Tensors& operands) -> Compute {
    return [=] { return function(operands); };
  };
}

std::vector<Record> measure(const std::vector<Case>& cases, const CommonOptions& common, bool check) {
  const benchmark::TimerOptions timer = common.timer();
  // Before the operands fill the caches, and never between two that are timed interleaved.
  const Ceilings& best = ceilings(timer.device);
  std::list<Runner> runners;
  std::vector<Runner*> timed;
  std::vector<benchmark::Subject> subjects;
  for (const Case& one : cases) {
    Runner& runner = runners.emplace_back(one);
    if (runner.failed()) continue;
    timed.push_back(&runner);
    subjects.push_back({.run = [&runner] { runner.attempt([&] { (void)runner.compute(); }); }});
    if (one.tune) subjects.back().tune = [&runner] { runner.attempt(runner.one.tune); };
  }
  const std::vector<benchmark::Measurement> measurements = benchmark::Timer(timer).measure_in_turns(subjects);

  for (std::size_t i = 0; i < timed.size(); ++i) {
    Runner& runner = *timed[i];
    if (runner.failed()) continue;
    runner.record.time = Time(measurements[i]);
    add_rates(runner, best);
    if (check) add_error(runner);
    if (runner.one.finish) runner.one.finish(runner.record);
  }
  std::vector<Record> records;
  for (Runner& runner : runners) records.push_back(std::move(runner.record));
  return records;
}

double bytes_of(const Tensors& tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors)
    bytes += static_cast<double>(t.numel()) * static_cast<double>(size_of(t.dtype()));
  return bytes;
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

Tensor as_kind(const Tensor& x, const OperandKind& kind) {
  Tensor y = ops::to_device(x, kind.device);
  if (is_floating(x.dtype())) y = ops::cast(y, dtypes.at(kind.dtype));
  if (!kind.format.empty() && x.rank() >= 3 && x.rank() <= 5) y = ops::to_format(y, formats.at(kind.format));
  return y;
}

Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed) {
  manual_seed(seed);
  return as_kind(randn(shape, {.device = kind.device}), kind);
}

std::vector<OperandKind> OperandOptions::kinds(Device device) const {
  std::vector<OperandKind> all;
  for (const std::string& dtype : dtypes)
    for (const std::string& format : formats) all.push_back({dtype, format, device});
  return all;
}

void add_operand_options(CLI::App& app, OperandOptions& options) {
  add_list(app, "--dtype", options.dtypes, "types of the operands, separated by commas",
           {"float64", "float32", "bfloat16", "float16"});
  std::vector<std::string> known{"contiguous", "channels_last"};
  std::string of_what = "of the operands";
  if (options.formats[0] == "auto") {
    known.insert(known.begin(), "auto");
    of_what = "of images, on CUDA of what convolutions give, too (auto: what Pleat chooses)";
  }
  if (!options.formats[0].empty())
    add_list(app, "--format", options.formats, "memory formats " + of_what + ", separated by commas", known);
  if (!options.precision.empty())
    add_choice(app, "--precision", options.precision, {"highest", "high", "medium"},
               "of float32 on CUDA: highest is true float32, high TF32 inside, medium bfloat16 inside");
  app.add_flag("--check", options.check, "the error against float64, beside the time");
}

Case make_case(const std::string& subcommand, const std::string& problem, const Record::Texts& labels,
               const OperandKind& kind) {
  Case one{.record = {.subcommand = subcommand, .labels = {{"problem", problem}}},
           .dtype = dtypes.at(kind.dtype),
           .prepare = {}};
  Record::Texts& all = one.record.labels;
  all.insert(all.end(), labels.begin(), labels.end());
  all.emplace_back("dtype", kind.dtype);
  if (!kind.format.empty()) all.emplace_back("format", kind.format);
  all.emplace_back("device", name(kind.device));
  return one;
}

void OperationSubcommand::add_options(CLI::App& app) {
  app.add_option(shape_.name, shapes_, shape_.description + "; several may be given")->take_all();
  if (passes_.size() > 1) add_list(app, "--pass", passes_, "which passes, separated by commas", passes_);
  add_operand_options(app, operands_);
}

void OperationSubcommand::run(const CommonOptions& common, Report& report) {
  Layout shown = layout_;
  if (shown.heading.empty()) {
    shown.heading = {"problem"};
    shown.columns.insert(shown.columns.end(), {"dtype", "format"});
  }
  shown.columns.insert(shown.columns.end(),
                       {"median", "quartiles", "runs", "first_call", "gflops", "gflops_valid",
                        "share_of_peak", "gbytes", "share_of_copy", "workspace_bytes", "error", "bad_error"});
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

void OperationSubcommand::list(const CommonOptions& common, const Block& block) const {
  std::vector<Shape> shapes;
  for (const std::string& text : !shapes_.empty() ? shapes_ : common.quick ? shape_.quick : shape_.usual) {
    shapes.push_back(parse_sizes(name() + ": " + shape_.name, text));
    check<UsageError>(shape_.fits(shapes.back().size()), "{}: {}: must have {}, got \"{}\"", name(),
                      shape_.name, shape_.must_have, text);
  }
  check_options(shapes);
  for (const Shape& shape : shapes)
    for (const std::string& pass : passes_)
      block(cases(shape, pass, operands_.kinds(common.chosen_device())), true);
}

}  // namespace pleat::bench
