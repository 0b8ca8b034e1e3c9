#include "pleat/bench/measure.h"

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

/// A case on the way to its record. It runs until it throws for the first time, and the record says why: one
/// that cannot go on must not end those that it is timed with.
struct Runner {
  const Case& one;
  Record record;
  Prepared prepared;

  explicit Runner(const Case& c) : one(c), record(c.record) {
    attempt([&] { prepared = one.prepare(); });
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

  void add_rates(const Ceilings& best) {
    const double giga = 1e-9 / record.time->median();
    if (one.flops > 0) {
      record.set_value("flops", one.flops);
      record.set_value("gflops", giga * one.flops);
      if (const auto peak = best.peak(one.dtype, one.precision))
        record.set_value("share_of_peak", giga * one.flops / *peak);
      if (prepared.bytes > 0) record.set_value("intensity", one.flops / prepared.bytes);
    }
    if (prepared.bytes > 0) {
      record.set_value("bytes", prepared.bytes);
      record.set_value("gbytes", giga * prepared.bytes);
      record.set_value("share_of_copy", giga * prepared.bytes / best.copy_bandwidth());
    }
  }

  void add_error() {
    const PrecisionScope scope(one.precision);
    try {
      const Tensors exact = one.exact(), got = prepared.run();
      double worst = 0;
      for (std::size_t i = 0; i < exact.size(); ++i)
        worst = std::max(worst, relative_error(got.at(i), exact[i]));
      record.set_value("error", worst);  // not when it is not finite
      if (!std::isfinite(worst)) record.set_detail("error", "not finite");
    } catch (const OutOfMemoryError& error) {
      record.set_detail("not_checked", error.what());
    }
  }
};

}  // namespace

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
    subjects.push_back({.run = [&runner] { runner.attempt([&] { (void)runner.prepared.run(); }); }});
    if (one.tune) subjects.back().tune = [&runner] { runner.attempt(runner.one.tune); };
  }
  const std::vector<benchmark::Measurement> measurements = benchmark::Timer(timer).measure_in_turns(subjects);

  for (std::size_t i = 0; i < timed.size(); ++i) {
    Runner& runner = *timed[i];
    if (runner.failed()) continue;
    runner.record.time = measurements[i];
    runner.add_rates(best);
    if (check && runner.one.exact) runner.add_error();
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
  const auto length = [](const Tensor& t) { return pleat::norm(t).item<double>(); };
  const double all = length(plain(exact)), difference = length(plain(got) - plain(exact));
  const double error = all > 0 ? difference / all : difference;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

Tensor operand(const Shape& shape, const OperandKind& kind, uint64_t seed) {
  manual_seed(seed);
  const Tensor x = ops::cast(randn(shape, {.device = kind.device}), dtypes.at(kind.dtype));
  const bool is_image = shape.size() >= 3 && shape.size() <= 5;
  return is_image && formats.count(kind.format) > 0 ? ops::to_format(x, formats.at(kind.format)) : x;
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
  add_list(app, "--format", options.formats, "memory formats, separated by commas (auto: what Pleat chooses)",
           {"auto", "contiguous", "channels_last"});
  add_choice(app, "--precision", options.precision, {"highest", "high", "medium"},
             "of float32 on CUDA: highest is true float32, high TF32 inside, medium bfloat16 inside");
}

}  // namespace pleat::bench
