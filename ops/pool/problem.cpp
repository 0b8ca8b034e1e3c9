#include "pleat/ops/conv/problem.h"

#include <algorithm>
#include <limits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/pool/kernels.h"

namespace pleat::ops {
namespace {

/// So that products of two sizes fit int64, and a typing error does not take all memory.
constexpr int64_t max_output = int64_t{1} << 24;

void check_input(const char* op, const Tensor& x) {
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
}

/// The number of windows (formula in pool.h), from sizes that are checked.
int64_t output_size(const char* op, std::size_t d, const Tensor& x, const PoolDim& dim, bool ceil_mode) {
  const int64_t reach = checked_add(checked_multiply(dim.dilation, dim.kernel - 1, op), 1, op);
  check<ValueError>(std::max(dim.low, dim.high) <= reach / 2,
                    "{}: padding must be at most half of {}, got {} and {}", op,
                    dim.dilation == 1 ? "kernel_size" : "what a dilated window reaches over",
                    std::max(dim.low, dim.high), reach);
  const int64_t padded = checked_add(dim.input, checked_add(dim.low, dim.high, op), op);
  // ceil_mode lets a window reach beyond the padding by less than a stride.
  check<ShapeError>(padded >= reach || (ceil_mode && reach - padded < dim.stride),
                    "{}: a window of {} does not fit spatial dimension {} of {} with padding {} and {}: the "
                    "output would be smaller than 1",
                    op, reach, d, x, dim.low, dim.high);
  if (padded <= reach) return 1;
  const int64_t span = padded - reach;
  int64_t output = span / dim.stride + 1;
  if (ceil_mode && span % dim.stride != 0) {
    // The last window must start in the input or its low padding. (No overflow: output * stride <= span +
    // stride.)
    const int64_t room = dim.input + dim.low;
    if (span <= std::numeric_limits<int64_t>::max() - dim.stride && output * dim.stride < room) ++output;
  }
  return output;
}

/// One output has no step to the next, one place of a window none either: what was asked for may be any
/// number.
WindowRule rule_of(const PoolDim& dim) {
  return {.inputs = dim.input,
          .outputs = dim.output,
          .kernel = dim.kernel,
          .stride = dim.output == 1 ? 1 : dim.stride,
          .padding = dim.low,
          .step = dim.kernel == 1 ? 1 : dim.dilation};
}

WindowRules filled(const std::vector<WindowRule>& rules) {
  WindowRules result;
  std::copy_backward(rules.begin(), rules.end(), result.end());
  return result;
}

std::vector<WindowRule> adaptive_dims(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  check_input(op, x);
  const auto sizes = options.output_size.expand(x.rank() - 2, op, "output_size");
  std::vector<WindowRule> result;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const int64_t inputs = x.shape()[d + 2];
    check<ValueError>(sizes[d] >= 0 && sizes[d] <= max_output, "{}: output_size must be in [0, {}], got {}",
                      op, max_output, sizes[d]);
    check<ShapeError>(inputs >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    if (sizes[d] > 0 && inputs % sizes[d] == 0) {
      const int64_t size = inputs / sizes[d];
      result.push_back({.inputs = inputs, .outputs = sizes[d], .kernel = size, .stride = size});
    } else {
      result.push_back({.inputs = inputs, .outputs = sizes[d], .adaptive = true});
    }
  }
  return result;
}

}  // namespace

std::vector<PoolDim> pool_dims(const char* op, const Tensor& x, const PerDim& kernel_size,
                               const PerDim& stride, const Padding& padding, const PerDim& dilation,
                               bool ceil_mode) {
  check_input(op, x);
  const int64_t dims = x.rank() - 2;
  const auto kernels = kernel_size.expand(dims, op, "kernel_size");
  const auto strides = stride.values().empty() ? kernels : stride.expand(dims, op, "stride");
  const auto dilations = dilation.expand(dims, op, "dilation");
  for (std::size_t d = 0; d < kernels.size(); ++d) {
    check<ValueError>(kernels[d] >= 1, "{}: kernel_size must be at least 1, got {}", op, kernels[d]);
    check<ValueError>(strides[d] >= 1, "{}: stride must be at least 1, got {}", op, strides[d]);
    check<ValueError>(dilations[d] >= 1, "{}: dilation must be at least 1, got {}", op, dilations[d]);
  }
  const auto sides = resolve_padding(op, padding, kernels, strides, dilations);
  std::vector<PoolDim> result;
  for (std::size_t d = 0; d < kernels.size(); ++d) {
    const auto [low, high] = sides[d];
    PoolDim dim{x.shape()[d + 2], kernels[d], strides[d], low, high, dilations[d], 0};
    check<ShapeError>(dim.input >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    dim.output = output_size(op, d, x, dim, ceil_mode);
    result.push_back(dim);
  }
  return result;
}

WindowRules windows_of(const std::vector<PoolDim>& dims) {
  std::vector<WindowRule> rules;
  for (const PoolDim& dim : dims) rules.push_back(rule_of(dim));
  return filled(rules);
}

WindowRules adaptive_windows(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  return filled(adaptive_dims(op, x, options));
}

LinearMap avg_pool_map(const char* op, const std::vector<PoolDim>& dims, const AvgPoolOptions& options) {
  check<ValueError>(!options.divisor_override || *options.divisor_override != 0,
                    "{}: divisor_override must not be 0", op);
  LinearMap map;
  for (const PoolDim& dim : dims) {
    check_rows(op, dim.output, std::min(dim.kernel, dim.input));
    SparseRows rows;
    rows.inputs = dim.input;
    for (int64_t o = 0; o < dim.output; ++o) {
      const int64_t start = o * dim.stride - dim.low;
      // Its elements below a place behind its first one.
      const auto below = [&](int64_t place) {
        return std::min(dim.kernel, place / dim.dilation + (place % dim.dilation != 0 ? 1 : 0));
      };
      const int64_t first = below(std::max<int64_t>(-start, 0));
      const int64_t last = std::max(first, below(std::max<int64_t>(dim.input - start, 0)));
      for (int64_t k = first; k < last; ++k) rows.add_tap(start + k * dim.dilation, 1);
      // Not beyond the padding, where ceil_mode leads.
      const int64_t counted = options.count_include_pad ? below(dim.input + dim.high - start) : last - first;
      rows.end_row(options.divisor_override || counted == 0 ? 1 : 1 / static_cast<double>(counted));
    }
    map.dims.push_back(std::move(rows));
  }
  // The windows of all dimensions together are divided by it once.
  if (options.divisor_override)
    for (double& scale : map.dims.back().scale) scale = 1 / static_cast<double>(*options.divisor_override);
  return map;
}

LinearMap adaptive_avg_pool_map(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  LinearMap map;
  for (const WindowRule& rule : adaptive_dims(op, x, options)) {
    check_rows(op, rule.outputs, rule.outputs == 0 ? 0 : rule.inputs / rule.outputs + 2);
    SparseRows rows;
    rows.inputs = rule.inputs;
    for (int64_t o = 0; o < rule.outputs; ++o) {
      for (int64_t i = rule.begin(o); i < rule.end(o); ++i) rows.add_tap(i, 1);
      rows.end_row(1 / static_cast<double>(rule.end(o) - rule.begin(o)));
    }
    map.dims.push_back(std::move(rows));
  }
  return map;
}

}  // namespace pleat::ops
