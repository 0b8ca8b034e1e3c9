#pragma once

#include "pleat/core/tensor/tensor.h"

/// Raw logic, element by element, broadcasting. An element of any type is true when it is not 0 (NaN is
/// true); the results are bool. All throw ShapeError when shapes do not broadcast.

namespace pleat::ops {

Tensor logical_and(const Tensor& a, const Tensor& b);  ///< a and b
Tensor logical_or(const Tensor& a, const Tensor& b);   ///< a or b, or both
Tensor logical_xor(const Tensor& a, const Tensor& b);  ///< a or b, not both
Tensor logical_not(const Tensor& x);                   ///< not x

}  // namespace pleat::ops
