#pragma once

#include "pleat/core/tensor/tensor.h"

/// Raw activation functions, element by element, and their backward passes in one pass over memory.
/// Floating: integers give float32, half types are computed in float32; only relu leaves integers what they
/// are. NaN in gives NaN out. `..._backward(dy, ...)` is dy times the derivative, in the promoted type of its
/// operands.

namespace pleat {

/// How gelu's normal distribution is computed: by the error function, or by the tanh formula of Hendrycks and
/// Gimpel, "Gaussian error linear units" (2016), which older networks were trained with.
enum class GeluApproximation { none, tanh };

struct SoftplusOptions {
  double beta = 1;        ///< above 0
  double threshold = 20;  ///< where beta * x is above it, the result is x
};

}  // namespace pleat

namespace pleat::ops {

/// max(x, 0).
Tensor relu(const Tensor& x);
void relu_into(const Tensor& out, const Tensor& x);
/// dy where y = relu(x) is positive, else 0.
Tensor relu_backward(const Tensor& dy, const Tensor& y);

/// x where it is positive, else negative_slope * x.
Tensor leaky_relu(const Tensor& x, double negative_slope);
Tensor leaky_relu_backward(const Tensor& dy, const Tensor& x, double negative_slope);

/// x where it is positive, else alpha * (exp(x) - 1). Clevert et al., "Exponential linear units" (2015).
Tensor elu(const Tensor& x, double alpha);
Tensor elu_backward(const Tensor& dy, const Tensor& x, double alpha);

/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// From y = sigmoid(x).
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y);

/// log(sigmoid(x)), without overflow.
Tensor log_sigmoid(const Tensor& x);
Tensor log_sigmoid_backward(const Tensor& dy, const Tensor& x);

/// log(1 + exp(beta x)) / beta, without overflow. Throws ValueError unless beta is positive.
Tensor softplus(const Tensor& x, SoftplusOptions options);
Tensor softplus_backward(const Tensor& dy, const Tensor& x, SoftplusOptions options);

/// x * P(X <= x) of a standard normal X.
Tensor gelu(const Tensor& x, GeluApproximation approximation);
Tensor gelu_backward(const Tensor& dy, const Tensor& x, GeluApproximation approximation);

/// x * sigmoid(x), also called swish.
Tensor silu(const Tensor& x);
Tensor silu_backward(const Tensor& dy, const Tensor& x);

/// x * tanh(softplus(x)). Misra, "Mish" (2019).
Tensor mish(const Tensor& x);
Tensor mish_backward(const Tensor& dy, const Tensor& x);

/// x * min(max(x + 3, 0), 6) / 6. Howard et al., "Searching for MobileNetV3" (2019).
Tensor hardswish(const Tensor& x);
Tensor hardswish_backward(const Tensor& dy, const Tensor& x);

}  // namespace pleat::ops
