#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/elementwise/math.h"

/// Differentiable mathematical functions. Types, special values and errors are those of
/// ops/elementwise/math.h. Where a function has no derivative (sign at 0, round at a half ...), 0 or a value
/// between those at the two sides stands in, as noted.

namespace pleat {

Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor atan2(const Tensor& y, const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor square(const Tensor& x);
Tensor abs(const Tensor& x);  ///< derivative 0 at 0, NaN at NaN (PyTorch: 0)

/// Piecewise constant: their derivative is 0.
Tensor sign(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);
Tensor trunc(const Tensor& x);

/// The exponent's derivative base^exponent * log(base) is taken as 0 where the base is 0 and the exponent not
/// negative.
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, Number exponent);
Tensor pow(Number base, const Tensor& exponent);

/// The derivative by b is -floor(a / b).
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, Number b);
Tensor remainder(Number a, const Tensor& b);

/// Where a = b, each gets half of the gradient, and all of it where one is NaN: as in PyTorch.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Number b);
Tensor minimum(const Tensor& a, Number b);
inline Tensor maximum(Number a, const Tensor& b) { return maximum(b, a); }
inline Tensor minimum(Number a, const Tensor& b) { return minimum(b, a); }

/// `clamp(x, {.min = 0, .max = 6})`. The gradient passes within the bounds, themselves included;
/// none passes a NaN.
Tensor clamp(const Tensor& x, ClampOptions bounds);
inline Tensor clamp(const Tensor& x, Number min, Number max) { return clamp(x, {.min = min, .max = max}); }

/// a + weight * (b - a).
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp(const Tensor& a, const Tensor& b, Number weight);

/// In place, keeping `x`'s type (DTypeError where that cannot hold the result). They return `x`.
const Tensor& clamp_(const Tensor& x, ClampOptions bounds);
const Tensor& lerp_(const Tensor& x, const Tensor& b, const Tensor& weight);
const Tensor& lerp_(const Tensor& x, const Tensor& b, Number weight);

}  // namespace pleat
