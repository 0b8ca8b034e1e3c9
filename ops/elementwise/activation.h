#pragma once

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"

/// Activation functions, element by element; differentiable. Integers give float32 (only relu leaves them
/// what they are), half types are computed in float32, on the CPU gelu, silu and sigmoid of bfloat16 to
/// 2^-12. NaN in gives NaN out. At a kink the derivative is PyTorch's, one of those at the two sides, as
/// noted.

namespace pleat {

/// How gelu's normal distribution is computed: by the error function, or by the tanh formula of Hendrycks and
/// Gimpel, "Gaussian error linear units" (2016), which older networks were trained with.
enum class GeluApproximation { none, tanh };

struct SoftplusOptions {
  double beta = 1;        ///< above 0
  double threshold = 20;  ///< where beta * x is above it, the result is x
};

/// max(x, 0); derivative 0 at 0.
Tensor relu(const Tensor& x);
/// In place. Returns `x`.
const Tensor& relu_(const Tensor& x);
/// x where positive, else negative_slope * x; derivative negative_slope at 0.
Tensor leaky_relu(const Tensor& x, Real negative_slope = 0.01);
/// x where positive, else weight * x, for a weight of one element, or [C] with one for each channel of x
/// [N, C, ...]; derivative weight at 0. Types are promoted. He et al., "Delving deep into rectifiers" (2015).
/// Throws ShapeError for another weight.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x where positive, else alpha * (exp(x) - 1). Clevert et al., "Exponential linear units" (2015).
Tensor elu(const Tensor& x, Real alpha = 1);
/// scale x where positive, else scale alpha (exp(x) - 1), with alpha = 1.67326324..., scale = 1.05070098...;
/// derivative scale alpha at 0. Klambauer et al., "Self-normalizing neural networks" (2017).
Tensor selu(const Tensor& x);
/// x where positive, else alpha * (exp(x / alpha) - 1). Barron, "Continuously differentiable exponential
/// linear units" (2017). Throws ValueError unless alpha is finite and not 0.
Tensor celu(const Tensor& x, Real alpha = 1);
/// x / (1 + |x|); NaN at infinities.
Tensor softsign(const Tensor& x);
/// x - tanh(x); near 0, where that is about x^3 / 3, it has the absolute error of tanh.
Tensor tanhshrink(const Tensor& x);
/// a * sigmoid(b) of the halves a and b of x along `dim`: half as large there. Dauphin et al., "Language
/// modeling with gated convolutional networks" (2017). Throws ShapeError unless the size of `dim` is even.
Tensor glu(const Tensor& x, Integer dim = -1);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// log(sigmoid(x)), without overflow.
Tensor log_sigmoid(const Tensor& x);
/// log(1 + exp(beta x)) / beta, without overflow. Throws ValueError unless beta is positive: `softplus(x,
/// {.beta = 2})`.
Tensor softplus(const Tensor& x, SoftplusOptions options = {});
/// x * P(X <= x) of a standard normal X: `gelu(x)`, `gelu(x, GeluApproximation::tanh)`.
Tensor gelu(const Tensor& x, GeluApproximation approximation = GeluApproximation::none);
/// x * sigmoid(x), also called swish.
Tensor silu(const Tensor& x);
/// x * tanh(softplus(x)). Misra, "Mish" (2019).
Tensor mish(const Tensor& x);
/// x * min(max(x + 3, 0), 6) / 6; derivative 0 at -3 (PyTorch 1.13: -1/2) and 1 at 3.
Tensor hardswish(const Tensor& x);
/// min(max(x + 3, 0), 6) / 6; derivative 0 at both ends.
Tensor hardsigmoid(const Tensor& x);
/// x within [min, max], else the nearer bound; derivative 0 at both. Throws ValueError unless min <= max.
Tensor hardtanh(const Tensor& x, Real min = -1, Real max = 1);
/// x within [0, 6], else the nearer bound; derivative 0 at both.
Tensor relu6(const Tensor& x);
/// x - lambd where x > lambd, x + lambd where x < -lambd, else 0; derivative 0 at both bounds. Throws
/// ValueError unless lambd is at least 0.
Tensor softshrink(const Tensor& x, Real lambd = 0.5);
/// x where |x| > lambd, else 0; derivative 0 at both bounds. Throws ValueError unless lambd is at least 0.
Tensor hardshrink(const Tensor& x, Real lambd = 0.5);
/// x where it is above `bound`, else `value`; derivative 0 at the bound. Throws ValueError for a bound of
/// NaN.
Tensor threshold(const Tensor& x, Real bound, Real value);

}  // namespace pleat
