#pragma once

#include "pleat/core/tensor/tensor.h"

/// Elements in another order, or several times: copies; differentiable. Dimensions may be negative, counting
/// from the end.

namespace pleat {

/// The order reversed along these dimensions. Throws IndexError, ValueError for a dimension named twice.
Tensor flip(const Tensor& x, const Dims& dims);
/// Every element moved on by shifts[i] along dims[i], those pushed over the end coming in at the start.
/// Without dimensions there is one shift, along all elements in row-major order. Throws ShapeError when the
/// numbers of shifts and dimensions differ.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});
/// The whole tensor repeats[d] times along each dimension d; further leading entries add dimensions.
/// Throws ShapeError when there are fewer entries than dimensions or one is negative.
Tensor repeat(const Tensor& x, const Sizes& repeats);
/// The same; entries that are missing at the front count as 1.
Tensor tile(const Tensor& x, Sizes repeats);
/// Each element `times` times in a row along `dim`. Throws ValueError when `times` is negative.
Tensor repeat_interleave(const Tensor& x, Integer times, Integer dim);

}  // namespace pleat
