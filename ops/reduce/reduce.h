#pragma once

#include <optional>

#include "pleat/core/tensor.h"

/// Raw reductions over any dimensions (none named: all). With `keepdim` a reduced dimension stays with
/// size 1.
///
/// Floating elements of any type are accumulated in float64, in blocks that are merged as a binary tree, and
/// the result is rounded once to the type of the input; results are the same, to the bit, for any number of
/// threads. The result keeps the order of a dense input's dimensions in memory.
///
/// All throw IndexError for a dimension out of range, ValueError for a dimension named twice.

namespace pleat::ops {

/// Integers and bool give int64. Of nothing: 0.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Integers and bool give float32. Of nothing: NaN.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

/// The largest (smallest) element; a NaN beats all. The type is that of x.
/// Throws ShapeError where there are no elements.
Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

/// Elements, and where along the reduced dimension they were found (int64).
struct ValuesIndices {
  Tensor values;
  Tensor indices;
};
/// The largest (smallest) elements along one dimension and the index of the first of equal ones; the first
/// NaN beats all. Throws ShapeError where there are no elements.
ValuesIndices max_with_indices(const Tensor& x, int64_t dim, bool keepdim = false);
ValuesIndices min_with_indices(const Tensor& x, int64_t dim, bool keepdim = false);
/// The indices alone; without `dim` the place in row-major order among all elements.
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);

}  // namespace pleat::ops
