#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/elementwise/activation.h"

/// Differentiable activation functions. Formulas, types and errors are those of ops/elementwise/activation.h;
/// at a kink the derivative is PyTorch's, one of those at the two sides, as noted.

namespace pleat {

/// max(x, 0); derivative 0 at 0.
Tensor relu(const Tensor& x);
/// In place. Returns `x`.
const Tensor& relu_(const Tensor& x);
/// x where positive, else negative_slope * x; derivative negative_slope at 0.
Tensor leaky_relu(const Tensor& x, Real negative_slope = 0.01);
/// x where positive, else alpha * (exp(x) - 1).
Tensor elu(const Tensor& x, Real alpha = 1);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// log(sigmoid(x)).
Tensor log_sigmoid(const Tensor& x);
/// log(1 + exp(beta x)) / beta: `softplus(x, {.beta = 2})`.
Tensor softplus(const Tensor& x, SoftplusOptions options = {});
/// x * P(X <= x) of a standard normal X: `gelu(x)`, `gelu(x, GeluApproximation::tanh)`.
Tensor gelu(const Tensor& x, GeluApproximation approximation = GeluApproximation::none);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// x * tanh(softplus(x)).
Tensor mish(const Tensor& x);
/// x * min(max(x + 3, 0), 6) / 6; derivative 0 at -3 (PyTorch 1.13: -1/2) and 1 at 3.
Tensor hardswish(const Tensor& x);
/// min(max(x + 3, 0), 6) / 6; derivative 0 at both ends.
Tensor hardsigmoid(const Tensor& x);
/// x within [min, max], else the nearer bound; derivative 0 at both. Throws ValueError unless min <= max.
Tensor hardtanh(const Tensor& x, Real min = -1, Real max = 1);
/// x within [0, 6], else the nearer bound; derivative 0 at both.
Tensor relu6(const Tensor& x);

}  // namespace pleat
