// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// The raw relu, which batch norm uses, too.

namespace pleat::ops {

/// max(x, 0).
Tensor relu(const Tensor& x);
/// Into `out`, which may be x itself.
void relu_into(const Tensor& out, const Tensor& x);
/// dy where y = relu(x) is above 0 or NaN, else 0.
Tensor relu_backward(const Tensor& dy, const Tensor& y);

}  // namespace pleat::ops
