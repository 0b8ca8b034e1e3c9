#pragma once

#include "pleat/core/tensor.h"

/// Raw activation functions, element by element, and their backward passes in one pass over memory.
/// Floating: integers give float32, half types are computed in float32; only relu leaves integers what they
/// are. NaN in gives NaN out.

namespace pleat::ops {

/// max(x, 0).
Tensor relu(const Tensor& x);
void relu_into(const Tensor& out, const Tensor& x);
/// dy where y = relu(x) is positive, else 0.
Tensor relu_backward(const Tensor& dy, const Tensor& y);

/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// dy * y * (1 - y) of y = sigmoid(x).
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y);

}  // namespace pleat::ops
