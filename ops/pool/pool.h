#pragma once

#include <string>

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/pool/pool_kernels.h"

/// Differentiable pooling. `max_pool`, `avg_pool` and their like take x [N, C, spatial...] of 1 to 3 spatial
/// dimensions; the functions with a number in their name want that many and take unbatched input [C,
/// spatial...] too. Results keep type and memory format. Options, formulas and errors:
/// ops/pool/pool_kernels.h.
///
///   max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
///   lp_pool2d(x, {.norm_type = 2, .kernel_size = 2});
///   adaptive_avg_pool2d(x, {.output_size = 1});

namespace pleat {

Tensor max_pool(const Tensor& x, const MaxPoolOptions& options);  ///< the largest element of each window
Tensor max_pool1d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool2d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool3d(const Tensor& x, const MaxPoolOptions& options);

/// The maxima, and (int64) where they are in their plane [spatial...], row-major; the first of equal ones.
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
/// has the gradient. Keeps x's memory format. Throws ShapeError, ValueError, IndexError for an index outside
/// its plane, DTypeError.
///
///   const auto [y, indices] = max_pool_with_indices(x, {.kernel_size = 2});
///   max_unpool(y, indices, {.kernel_size = 2});
Tensor max_unpool(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options);

Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options);  ///< the mean of each window
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
/// ValueError for another p, DTypeError unless x is floating, else what avg_pool throws.
Tensor lp_pool(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool1d(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool2d(const Tensor& x, const LpPoolOptions& options);
Tensor lp_pool3d(const Tensor& x, const LpPoolOptions& options);

Tensor adaptive_max_pool(
    const Tensor& x,
    const AdaptivePoolOptions& options);  ///< the largest element of each of output_size windows
Tensor adaptive_max_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool3d(const Tensor& x, const AdaptivePoolOptions& options);

Tensor adaptive_avg_pool(const Tensor& x,
                         const AdaptivePoolOptions& options);  ///< the mean of each of output_size windows
Tensor adaptive_avg_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& x, const AdaptivePoolOptions& options);

}  // namespace pleat
