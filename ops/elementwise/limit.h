// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

/// Activations that keep within bounds, as batch norm applies them to its result.

namespace pleat::ops {

/// x within the bounds, else the nearer one, into `out`, which may be x itself. Floating types.
void limit_into(const Tensor& out, const Tensor& x, const Bounds& bounds);
/// dy where y, so limited, lies between the bounds or is NaN, else 0.
Tensor limit_backward(const Tensor& dy, const Tensor& y, const Bounds& bounds);

}  // namespace pleat::ops
