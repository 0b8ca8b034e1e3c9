// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Reductions on any device, off the tape; ops/reduce/reduce.h says what they compute. `op` names the
/// function in errors.

namespace pleat {
struct NormOptions;
struct VarOptions;
struct VarMean;
struct ValuesIndices;
}  // namespace pleat

namespace pleat::ops {

Tensor reduce_sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Of floating elements, not rounded to their type.
Tensor reduce_sum_float64(const Tensor& x, const Dims& dims);
Tensor reduce_mean(const Tensor& x, const Dims& dims, bool keepdim);
Tensor reduce_prod(const Tensor& x, const Dims& dims, bool keepdim);
Tensor reduce_norm(const Tensor& x, const Dims& dims, const NormOptions& options);
Tensor reduce_logsumexp(const Tensor& x, const Dims& dims, bool keepdim);

/// Where `root`, with the standard deviation as `var`.
VarMean reduce_moments(const char* op, const Tensor& x, const Dims& dims, const VarOptions& options,
                       bool root);

/// factor g (x - mean) / degrees, where g and mean broadcast to x.
Tensor moments_gradient(const Tensor& g, const Tensor& x, const Tensor& mean, double factor, double degrees);

/// Whether any element is not 0; all, unless `is_any`.
Tensor reduce_truth(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool is_any);

/// The largest element, or the smallest.
Tensor reduce_extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool larger);
ValuesIndices reduce_extreme_with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                                          bool larger);

/// Which elements an extreme came from, to which its gradient is handed out: 1 where x is equal to `y` (the
/// result, its dimensions kept), else 0; of x's shape and type. NaNs count as equal.
Tensor equal_elements(const Tensor& x, const Tensor& y);

/// The gradient of the extremes y of floating lines along `dim` by x, on a GPU, in one launch: of x's memory
/// order. y and dy have size 1 there.
Tensor extreme_gradient_cuda(const char* op, const Tensor& dy, const Tensor& x, const Tensor& y, int64_t dim);

/// Zeros but for the `values` at the places `indices` (int64) along `dim`, where both have size 1: a tensor
/// of `size` there, in `format`.
Tensor place_at_indices(const Tensor& values, const Tensor& indices, int64_t dim, int64_t size,
                        MemoryFormat format);

}  // namespace pleat::ops
