#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::bench {

/// |got - wanted| / |wanted| as vectors, in float64, on the CPU; |got| where `wanted` is 0. Infinite when a
/// number is not finite. Throws ShapeError unless shapes are equal.
double relative_error(const Tensor& got, const Tensor& wanted);

}  // namespace pleat::bench
