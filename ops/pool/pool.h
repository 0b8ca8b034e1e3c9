#pragma once

#include <optional>
#include <string>

#include "pleat/core/base/argument.h"
#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

/// Pooling of x [N, C, spatial...] of 1 to 3 spatial dimensions, floating. The functions with a number in
/// their name want that many and take unbatched input [C, spatial...] too. Results keep type and memory
/// format. Differentiable. All throw ShapeError (rank, an output without elements), ValueError (kernel size,
/// stride or dilation below 1, padding above half of the window, "same" with a stride, divisor 0, an
/// implementation that does not exist), DTypeError, DeviceError.
///
///   max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
///   lp_pool2d(x, {.norm_type = 2, .kernel_size = 2});
///   adaptive_avg_pool2d(x, {.output_size = 1});

namespace pleat {

/// Windows of `kernel_size` at distance `stride` over an input with `padding`, given as that of a
/// convolution: a number, a list, {low, high} pairs, "same" (the result has the input's size; needs `.stride
/// = 1`) or "valid". The result has
///   floor((input + low + high - dilation (kernel_size - 1) - 1) / stride) + 1
/// elements in each spatial dimension; `ceil_mode` rounds up, but for a window that would start behind the
/// input and its low padding. Each side's padding is at most half of what a window reaches over,
/// dilation (kernel_size - 1) + 1.
struct MaxPoolOptions {
  Required<PerDim> kernel_size;
  PerDim stride = {};   ///< empty: kernel_size
  Padding padding = 0;  ///< never the maximum
  PerDim dilation = 1;
  bool ceil_mode = false;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};
/// The largest element of each window. A NaN is larger than any number; a window that dilation leads around
/// the input altogether gives -infinity.
Tensor max_pool(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool1d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool2d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool3d(const Tensor& x, const MaxPoolOptions& options);

/// The maxima, and (int64) where they are in their plane [spatial...], row-major; the first of equal ones. -1
/// where a window has no element.
struct MaxPoolWithIndices {
  Tensor values;
  Tensor indices;
};
MaxPoolWithIndices max_pool_with_indices(const Tensor& x, const MaxPoolOptions& options);

struct MaxUnpoolOptions {
  Required<PerDim> kernel_size;  ///< of the pool that is undone, like the next two
  PerDim stride = {};            ///< empty: kernel_size
  PerDim padding = 0;
  /// Of the spatial dimensions; empty: (n - 1) stride - 2 padding + kernel_size for each n of x. Others have
  /// to be within less than one stride of that.
  PerDim output_size = {};
};
/// What max_pool leaves of an image: x [N, C, spatial...] at the places that `indices`, of its shape, name in
/// their planes [spatial...], row-major, and 0 elsewhere. Of several that name one place the last stands and
/// has the gradient. Throws IndexError for an index outside its plane.
///
///   const auto [y, indices] = max_pool_with_indices(x, {.kernel_size = 2});
///   max_unpool(y, indices, {.kernel_size = 2});
Tensor max_unpool(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);

struct AvgPoolOptions {
  Required<PerDim> kernel_size;
  PerDim stride = {};   ///< empty: kernel_size
  Padding padding = 0;  ///< zeros
  PerDim dilation = 1;
  bool ceil_mode = false;
  /// Divide by the window's size with the padding in it, at both sides (but not what ceil_mode lets it reach
  /// beyond); else by the number of elements of the input in it. A window without any gives 0.
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};  ///< divide by this instead
  std::string implementation = {};               ///< "native", "reference"; empty: native
};
/// The mean of each window.
Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool1d(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool2d(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool3d(const Tensor& x, const AvgPoolOptions& options);

struct LpPoolOptions {
  Required<double> norm_type;  ///< p, above 0 and finite
  Required<PerDim> kernel_size;
  PerDim stride = {};   ///< empty: kernel_size
  Padding padding = 0;  ///< zeros
  PerDim dilation = 1;
  bool ceil_mode = false;
  std::string implementation = {};  ///< that of avg_pool
};
/// Power-average pooling, (the sum of x^p over the window)^(1/p): for p = 1 the sum, for large p near the
/// maximum. Where the sum is 0 so are result and gradient. NaN where it is negative, as x^3 of negative
/// numbers may be, and p is not 1. (PyTorch multiplies a window that reaches beyond the input by ceil_mode up
/// to a whole one; here the sum is that of its elements.) Half types are computed in float32. Throws
/// ValueError for another p.
Tensor lp_pool(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool1d(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool2d(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool3d(const Tensor& x, const LpPoolOptions& options);

/// Output o of n covers inputs floor(o size / n) to ceil((o + 1) size / n) - 1.
struct AdaptivePoolOptions {
  PerDim output_size = 1;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};
/// The largest element of each of output_size windows.
Tensor adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool3d(const Tensor& x, const AdaptivePoolOptions& options);
/// The mean of each of output_size windows.
Tensor adaptive_avg_pool(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& x, const AdaptivePoolOptions& options);

}  // namespace pleat
