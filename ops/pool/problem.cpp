#include "pleat/ops/pool/problem.h"

#include <algorithm>
#include <limits>

#include "pleat/core/format.h"

namespace pleat::ops {
namespace {

/// Keeps products of two sizes in int64, and a slip of the pen from taking all memory.
constexpr int64_t max_output = int64_t{1} << 24;

/// One spatial dimension of a pool.
struct Dimension {
  int64_t input, kernel, stride, padding, dilation, output;
};

void check_input(const char* op, const Tensor& x) {
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  check<DeviceError>(x.device().is_cpu(), "{}: this is Pleat built without CUDA, got {}", op, x);
}

/// The number of windows (formula in pool.h), from sizes that are checked.
int64_t output_size(const char* op, std::size_t d, const Tensor& x, const Dimension& dim, bool ceil_mode) {
  const int64_t reach = checked_add(checked_multiply(dim.dilation, dim.kernel - 1, op), 1, op);
  const int64_t padded = checked_add(dim.input, checked_multiply(dim.padding, 2, op), op);
  check<ShapeError>(
      padded >= reach,
      "{}: a window of {} does not fit spatial dimension {} of {} with padding {}: the output would be "
      "smaller than 1",
      op, reach, d, x, dim.padding);
  const int64_t span = padded - reach;
  int64_t output = span / dim.stride + 1;
  if (ceil_mode && span % dim.stride != 0) {
    // The last window must start in the input or its low padding. (No overflow: output * stride <= span +
    // stride.)
    const int64_t room = dim.input + dim.padding;
    if (span <= std::numeric_limits<int64_t>::max() - dim.stride && output * dim.stride < room) ++output;
  }
  return output;
}

std::vector<Dimension> dimensions(const char* op, const Tensor& x, const PerDim& kernel_size,
                                  const PerDim& stride, const PerDim& padding, const PerDim& dilation,
                                  bool ceil_mode) {
  check_input(op, x);
  const int64_t dims = x.rank() - 2;
  const auto kernels = kernel_size.expand(dims, op, "kernel_size");
  const auto strides = stride.values().empty() ? kernels : stride.expand(dims, op, "stride");
  const auto paddings = padding.expand(dims, op, "padding");
  const auto dilations = dilation.expand(dims, op, "dilation");
  std::vector<Dimension> result;
  for (std::size_t d = 0; d < kernels.size(); ++d) {
    Dimension dim{x.shape()[d + 2], kernels[d], strides[d], paddings[d], dilations[d], 0};
    check<ValueError>(dim.kernel >= 1, "{}: kernel_size must be at least 1, got {}", op, dim.kernel);
    check<ValueError>(dim.stride >= 1, "{}: stride must be at least 1, got {}", op, dim.stride);
    check<ValueError>(dim.dilation >= 1, "{}: dilation must be at least 1, got {}", op, dim.dilation);
    check<ValueError>(dim.padding >= 0 && dim.padding <= dim.kernel / 2,
                      "{}: padding must be at most half of kernel_size, got {} and {}", op, dim.padding,
                      dim.kernel);
    check<ShapeError>(dim.input >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    dim.output = output_size(op, d, x, dim, ceil_mode);
    result.push_back(dim);
  }
  return result;
}

/// Divides, rounding up, a >= 0.
int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

Windows windows_of(const Dimension& dim) {
  Windows windows{.inputs = dim.input, .step = dim.dilation, .begin = {}, .end = {}};
  for (int64_t o = 0; o < dim.output; ++o) {
    const int64_t start = o * dim.stride - dim.padding;
    // Whole steps past the padding.
    const int64_t skipped = start < 0 ? ceil_divide(-start, dim.dilation) : 0;
    windows.begin.push_back(std::min(start + skipped * dim.dilation, dim.input));
    // start + reach cannot overflow: start < input, and input + reach was checked to fit.
    windows.end.push_back(std::min(start + dim.dilation * (dim.kernel - 1) + 1, dim.input));
  }
  return windows;
}

Windows one_window() { return {.inputs = 1, .step = 1, .begin = {0}, .end = {1}}; }

Windows3 filled(std::vector<Windows> windows) {
  while (windows.size() < 3) windows.insert(windows.begin(), one_window());
  return {std::move(windows[0]), std::move(windows[1]), std::move(windows[2])};
}

/// Where window o of n begins: floor(o * inputs / n), without its product.
int64_t adaptive_begin(int64_t o, int64_t inputs, int64_t n) { return inputs / n * o + inputs % n * o / n; }

std::vector<Windows> adaptive_dims(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  check_input(op, x);
  const auto sizes = options.output_size.expand(x.rank() - 2, op, "output_size");
  std::vector<Windows> result;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const int64_t n = sizes[d];
    const int64_t inputs = x.shape()[d + 2];
    check<ValueError>(n >= 0 && n <= max_output, "{}: output_size must be in [0, {}], got {}", op, max_output,
                      n);
    check<ShapeError>(inputs >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    Windows windows{.inputs = inputs, .step = 1, .begin = {}, .end = {}};
    for (int64_t o = 0; o < n; ++o) {
      windows.begin.push_back(adaptive_begin(o, inputs, n));
      const int64_t next = adaptive_begin(o + 1, inputs, n);
      windows.end.push_back(next + (inputs % n * (o + 1) % n != 0 ? 1 : 0));
    }
    result.push_back(std::move(windows));
  }
  return result;
}

}  // namespace

Windows3 max_pool_windows(const char* op, const Tensor& x, const MaxPoolOptions& options) {
  std::vector<Windows> windows;
  for (const Dimension& dim : dimensions(op, x, options.kernel_size, options.stride, options.padding,
                                         options.dilation, options.ceil_mode))
    windows.push_back(windows_of(dim));
  return filled(std::move(windows));
}

Windows3 adaptive_windows(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  return filled(adaptive_dims(op, x, options));
}

LinearMap avg_pool_map(const char* op, const Tensor& x, const AvgPoolOptions& options) {
  const auto dims =
      dimensions(op, x, options.kernel_size, options.stride, options.padding, 1, options.ceil_mode);
  check<ValueError>(!options.divisor_override || *options.divisor_override != 0,
                    "{}: divisor_override must not be 0", op);
  LinearMap map;
  for (const Dimension& dim : dims) {
    SparseRows rows;
    rows.inputs = dim.input;
    for (int64_t o = 0; o < dim.output; ++o) {
      const int64_t start = o * dim.stride - dim.padding;
      const int64_t begin = std::max<int64_t>(start, 0);
      const int64_t end = std::min(start + dim.kernel, dim.input);
      for (int64_t i = begin; i < end; ++i) rows.add_tap(i, 1);
      const int64_t padded = std::min(start + dim.kernel, dim.input + dim.padding) - start;
      const int64_t divisor = options.count_include_pad ? padded : end - begin;
      rows.end_row(options.divisor_override ? 1 : 1 / static_cast<double>(divisor));
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
  for (const Windows& windows : adaptive_dims(op, x, options)) {
    SparseRows rows;
    rows.inputs = windows.inputs;
    for (int64_t o = 0; o < windows.outputs(); ++o) {
      const auto at = static_cast<std::size_t>(o);
      for (int64_t i = windows.begin[at]; i < windows.end[at]; ++i) rows.add_tap(i, 1);
      rows.end_row(1 / static_cast<double>(windows.end[at] - windows.begin[at]));
    }
    map.dims.push_back(std::move(rows));
  }
  return map;
}

}  // namespace pleat::ops
