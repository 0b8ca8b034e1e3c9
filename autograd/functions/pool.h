#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/pool/pool.h"

/// Differentiable pooling. `max_pool`, `avg_pool` and their like take x [N, C, spatial...] of 1 to 3 spatial
/// dimensions; the functions with a number in their name want that many and take unbatched input [C,
/// spatial...] too. Results keep type and memory format. Options, formulas and errors: ops/pool/pool.h.
///
///   max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
///   adaptive_avg_pool2d(x, {.output_size = 1});

namespace pleat {

Tensor max_pool(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool1d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool2d(const Tensor& x, const MaxPoolOptions& options);
Tensor max_pool3d(const Tensor& x, const MaxPoolOptions& options);

/// The maxima, and (int64) where they are in their plane [spatial...], row-major; the first of equal ones.
struct MaxPoolWithIndices {
  Tensor values;
  Tensor indices;
};
MaxPoolWithIndices max_pool_with_indices(const Tensor& x, const MaxPoolOptions& options);

Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool1d(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool2d(const Tensor& x, const AvgPoolOptions& options);
Tensor avg_pool3d(const Tensor& x, const AvgPoolOptions& options);

Tensor adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_max_pool3d(const Tensor& x, const AdaptivePoolOptions& options);

Tensor adaptive_avg_pool(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool1d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& x, const AdaptivePoolOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& x, const AdaptivePoolOptions& options);

}  // namespace pleat
