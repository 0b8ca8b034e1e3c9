#include "pleat/inference/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/quantized/quantized_max_pool.h"

namespace pleat::inference {
namespace {

constexpr std::size_t bins = 2048;

std::size_t at(int v) { return static_cast<std::size_t>(v); }

/// Whether a call only moves numbers, whatever they stand for.
bool moves(const onnx::Call& call) {
  static const auto& names = *new std::set<std::string_view>{
      "view",          "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute",
      "transpose",     "slice",   "narrow",  "select",    "cat",     "stack",     "channel_shuffle",
      "pixel_shuffle", "split",   "flip",    "roll",      "repeat",  "expand",    "max_pool"};
  return names.contains(call.function);
}

}  // namespace

std::vector<std::string> Quantizer::way_of(const onnx::Trace& trace) {
  std::vector<std::string> way;
  for (const onnx::Call& call : trace.calls) {
    std::string text = call.function;
    for (const auto& list : {call.inputs, call.outputs}) {
      for (const int v : list) text += ' ' + std::to_string(v);
      text += ';';
    }
    way.push_back(std::move(text));
  }
  return way;
}

std::size_t Quantizer::group_of(std::size_t value) const {
  while (groups_[value] != value) value = groups_[value];
  return value;
}

void Quantizer::begin(const onnx::Trace& trace) {
  if (!way_.empty()) {
    check<ValueError>(way_of(trace) == way_,
                      "calibration: the examples take different ways through the network; give those of one");
    return;
  }
  way_ = way_of(trace);
  groups_.resize(trace.values.size());
  std::iota(groups_.begin(), groups_.end(), std::size_t{0});
  for (const onnx::Call& call : trace.calls) {
    if (!moves(call)) continue;
    int first = -1;
    for (const auto& list : {call.inputs, call.outputs})
      for (const int v : list) {
        if (v < 0) continue;
        if (first >= 0) groups_[group_of(at(v))] = group_of(at(first));
        first = v;
      }
  }
  histograms_.resize(groups_.size());
}

void Quantizer::observe(const std::vector<Tensor>& values) {
  seen_.resize(values.size());
  for (std::size_t v = 0; v < std::min(values.size(), groups_.size()); ++v) {
    if (seen_[v] || !values[v].defined()) continue;
    seen_[v] = true;
    if (values[v].dtype() != float32 || !values[v].device().is_cpu()) continue;
    Histogram& h = histograms_[group_of(v)];
    const Tensor dense = ops::to_format(values[v], MemoryFormat::contiguous);
    const std::span<const float> numbers(dense.data<float>(), static_cast<std::size_t>(dense.numel()));
    if (!counts_) {
      float least = 0, most = 0;
      for (const float x : numbers)
        if (std::isfinite(x)) least = std::min(least, x), most = std::max(most, x);
      h.least = std::min<double>(h.least, least);
      h.most = std::max<double>(h.most, most);
    } else if (h.most > h.least) {
      h.counts.resize(bins);
      const double per_unit = static_cast<double>(bins) / (h.most - h.least);
      for (const float x : numbers)
        if (x != 0 && std::isfinite(x))  // 0 is held as it is
          ++h.counts[std::min(static_cast<std::size_t>(std::max(0.0, (x - h.least) * per_unit)), bins - 1)];
    }
  }
}

/// The range with the least squared error: numbers in it are rounded, by scale / sqrt(12) on average, and
/// those beyond become its ends.
ops::Quantization Quantizer::Histogram::quantization() const {
  constexpr int steps = 100;
  const double width = (most - least) / static_cast<double>(bins);
  // Sums of the numbers below each bin, of their squares, and how many they are.
  std::vector<double> number(bins + 1), sum(bins + 1), square(bins + 1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double x = least + (static_cast<double>(i) + 0.5) * width;
    number[i + 1] = number[i] + counts[i];
    sum[i + 1] = sum[i] + counts[i] * x;
    square[i + 1] = square[i] + counts[i] * x * x;
  }
  const auto beyond = [&](std::size_t first, std::size_t last, double end) {
    return square[last] - square[first] - 2 * end * (sum[last] - sum[first]) +
           end * end * (number[last] - number[first]);
  };
  const auto bin_of = [&](double x) {
    return static_cast<std::size_t>(std::clamp((x - least) / width, 0.0, static_cast<double>(bins)));
  };
  double best = std::numeric_limits<double>::infinity();
  std::pair<double, double> range{least, most};
  for (int low = 0; low < (least < 0 ? steps : 1); ++low)
    for (int high = 0; high < (most > 0 ? steps : 1); ++high) {
      const double a = least * (steps - low) / steps, b = most * (steps - high) / steps;
      const std::size_t first = bin_of(a), last = std::max(first, bin_of(b));
      const double scale = (b - a) / 255;
      const double error =
          beyond(0, first, a) + beyond(last, bins, b) + (number[last] - number[first]) * scale * scale / 12;
      if (error < best) {
        best = error;
        range = {a, b};
      }
    }
  return ops::Quantization::of(range.first, range.second);
}

void Quantizer::finish() {
  quantizations_.resize(groups_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group)
    if (!histograms_[group].counts.empty()) quantizations_[group] = histograms_[group].quantization();
  histograms_.clear();
  finished_ = true;
}

void Quantizer::restore(const onnx::Trace& trace,
                        const std::vector<std::optional<ops::Quantization>>& values) {
  begin(trace);
  finish();
  for (std::size_t v = 0; v < values.size(); ++v)
    if (values[v]) quantizations_[group_of(v)] = values[v];
}

const char* Quantizer::refusal(int input, const Tensor& weight) const {
  if (weight.dtype() != float32) return "its type";
  if (!ops::QuantizedConv::sums_fit(weight.numel() / weight.size(0))) return "too many products in a sum";
  if (!quantizations_[group_of(at(input))]) return "no numbers in the calibration examples";
  return nullptr;
}

std::vector<bool> Quantizer::uint8_values(const std::vector<StepValues>& steps,
                                          const onnx::Trace& trace) const {
  std::vector<bool> is(trace.values.size());
  for (const StepValues& step : steps)
    if (step.is_int8 || moves(*step.call))
      for (const int v : step.writes)
        if (v >= 0) is[at(v)] = quantizations_[group_of(at(v))].has_value();
  for (const int v : trace.outputs) is[at(v)] = false;
  const auto all = [&](const std::vector<int>& list) {
    return std::all_of(list.begin(), list.end(), [&](int v) { return v < 0 || is[at(v)]; });
  };
  for (bool changed = true; changed;) {
    changed = false;
    const auto drop = [&](const std::vector<int>& list) {
      for (const int v : list)
        if (v >= 0 && is[at(v)]) {
          is[at(v)] = false;
          changed = true;
        }
    };
    for (const StepValues& step : steps) {
      if (step.is_int8 || (moves(*step.call) && all(step.reads) && all(step.writes))) continue;
      drop(step.reads);
      drop(step.writes);
    }
  }
  return is;
}

std::shared_ptr<const ops::QuantizedConv> Quantizer::make(const QuantizedStep& step,
                                                          const std::vector<bool>& is_uint8,
                                                          SharedBlocks& shared) {
  const auto is = [&](int v) { return v >= 0 && is_uint8[at(v)]; };
  auto& made = made_[{step.call, step.output, step.addend, is(step.output), is(step.addend)}];
  if (made != nullptr) return made;
  const auto how = [&](int v) { return quantizations_[group_of(at(v))]; };
  ops::QuantizedFinish finish{.bounds = step.limits};
  if (is(step.output)) finish.y = how(step.output);
  if (is(step.addend)) finish.addend = how(step.addend);
  if (step.activation != nullptr && !step.limits.any()) finish.f = &step.activation->function();
  struct Kept {
    ops::QuantizedConv conv;
    LinearActivationPtr activation;
  };
  const auto kept = std::make_shared<const Kept>(
      Kept{{step.weight, step.bias, step.options, *how(step.input), finish, shared}, step.activation});
  return made = {kept, &kept->conv};
}

Run Quantizer::run_of_uint8(const onnx::Trace& trace, const onnx::Call& call) {
  if (call.function != "max_pool") return run_of(trace, call);
  const Options o(trace, call);
  ops::PoolWindows windows;
  const auto fill = [&](ops::Spatial& sizes, const char* name) {
    const std::vector<int64_t> given = o.integers(name);
    o.check(given.size() <= sizes.size(), name);
    std::copy(given.begin(), given.end(), sizes.end() - std::ssize(given));
  };
  fill(windows.kernel, "kernel");
  fill(windows.stride, "stride");
  fill(windows.low, "padding_low");
  fill(windows.dilation, "dilation");
  const Shape &x = o.input(0).shape(), &y = o.output().shape();
  o.check(x.size() == y.size() && x.size() > 2 && x.size() < 6 && x[0] == y[0] && x[1] == y[1] &&
              std::ranges::min(windows.kernel) > 0 && std::ranges::min(windows.stride) > 0 &&
              std::ranges::min(windows.dilation) > 0,
          "kernel");
  return [windows, shape = o.output().shape()](Inputs in, Outputs out) {
    *out[0] = ops::quantized_max_pool(*in[0], windows, shape);
  };
}

}  // namespace pleat::inference
