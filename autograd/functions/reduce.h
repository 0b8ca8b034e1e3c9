#pragma once

#include "pleat/core/tensor.h"

namespace pleat {

/// The sum over some dimensions (none named: all).
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The sum over what broadcasting from `shape` to x's shape had repeated: undoes it for gradients.
/// Throws ShapeError when x's shape cannot come from `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace pleat
