// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

/// The raw relu, and what batch norm uses of it and its like.

namespace pleat::ops {

/// max(x, 0).
Tensor relu(const Tensor& x);
/// Into `out`, which may be x itself.
void relu_into(const Tensor& out, const Tensor& x);
/// dy where y = relu(x) is above 0 or NaN, else 0.
Tensor relu_backward(const Tensor& dy, const Tensor& y);

/// x within the bounds, else the nearer one, into `out`, which may be x itself. Floating types.
void limit_into(const Tensor& out, const Tensor& x, const Bounds& bounds);
/// dy where y, so limited, lies between the bounds or is NaN, else 0.
Tensor limit_backward(const Tensor& dy, const Tensor& y, const Bounds& bounds);

}  // namespace pleat::ops
