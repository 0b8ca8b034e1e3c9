#pragma once

#include <optional>

#include "pleat/core/tensor.h"
#include "pleat/ops/reduce/reduce.h"

/// Differentiable reductions over any dimensions (none named: all). With `keepdim` a reduced dimension stays
/// with size 1. What each computes, and the errors: ops/reduce/reduce.h.

namespace pleat {

Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The sum over what broadcasting from `shape` to x's shape had repeated: undoes it for gradients.
/// Throws ShapeError when x's shape cannot come from `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

/// The largest (smallest) element. The gradient is shared evenly by all elements that are equal to it.
Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

using ops::ValuesIndices;
/// The largest (smallest) elements along one dimension, with the index of the first of equal ones, to which
/// the whole gradient of `values` goes.
ValuesIndices max_with_indices(const Tensor& x, int64_t dim, bool keepdim = false);
ValuesIndices min_with_indices(const Tensor& x, int64_t dim, bool keepdim = false);

/// Indices (int64): no gradient. Without `dim` the place in row-major order among all elements.
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);

}  // namespace pleat
