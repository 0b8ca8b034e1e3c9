#pragma once

#include <optional>

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Mathematical functions, element by element, broadcasting; differentiable. Types (core/tensor/dtype.h says
/// how they are promoted):
/// - "floating": integers and bool give float32; floating types stay, half types are computed in float32;
/// - "own type": the promoted type of the operands, so integers stay integers; bool throws DTypeError.
/// A plain number beside a tensor is weak. Functions of several tensors throw ShapeError when shapes do not
/// broadcast. Outside a function's domain the result is NaN or infinite, as in IEEE 754; NaN in gives NaN
/// out. Where a function has no derivative (sign at 0, round at a half ...), 0 or a value between those at
/// the two sides stands in, as noted.

namespace pleat {

/// Bounds of clamp; one may be left out.
struct ClampOptions {
  std::optional<Number> min = std::nullopt;
  std::optional<Number> max = std::nullopt;
};

// Floating.
Tensor exp(const Tensor& x);         ///< e^x
Tensor exp2(const Tensor& x);        ///< 2^x
Tensor expm1(const Tensor& x);       ///< exp(x) - 1, exact near 0
Tensor log(const Tensor& x);         ///< the natural logarithm
Tensor log1p(const Tensor& x);       ///< log(1 + x), exact near 0
Tensor log2(const Tensor& x);        ///< the logarithm to base 2
Tensor log10(const Tensor& x);       ///< the logarithm to base 10
Tensor sqrt(const Tensor& x);        ///< the square root
Tensor rsqrt(const Tensor& x);       ///< 1 / sqrt(x)
Tensor reciprocal(const Tensor& x);  ///< 1 / x
Tensor sin(const Tensor& x);         ///< the sine of x in radians
Tensor cos(const Tensor& x);         ///< the cosine of x in radians
Tensor tan(const Tensor& x);         ///< sin(x) / cos(x)
Tensor asin(const Tensor& x);        ///< the angle on [-pi/2, pi/2] whose sine is x
Tensor acos(const Tensor& x);        ///< the angle on [0, pi] whose cosine is x
Tensor atan(const Tensor& x);        ///< the angle on (-pi/2, pi/2) whose tangent is x
/// The angle of the point (x, y) on (-pi, pi].
Tensor atan2(const Tensor& y, const Tensor& x);
Tensor sinh(const Tensor& x);   ///< (e^x - e^-x) / 2
Tensor cosh(const Tensor& x);   ///< (e^x + e^-x) / 2
Tensor tanh(const Tensor& x);   ///< sinh(x) / cosh(x)
Tensor asinh(const Tensor& x);  ///< log(x + sqrt(x^2 + 1)), the inverse of sinh
Tensor acosh(const Tensor& x);  ///< log(x + sqrt(x^2 - 1)), the inverse of cosh; NaN below 1
Tensor atanh(const Tensor& x);  ///< log((1 + x) / (1 - x)) / 2; infinite at 1 and -1, NaN beyond
/// log(exp(a) + exp(b)), without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
/// sqrt(a^2 + b^2), without overflow; infinite where one is, though the other be NaN. No derivative at the
/// origin: NaN.
Tensor hypot(const Tensor& a, const Tensor& b);
struct LogitOptions {
  std::optional<double> eps = {};  ///< in [0, 0.5]; x is moved into [eps, 1 - eps] before
};
/// log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. With eps no gradient passes outside of its
/// bounds. Throws ValueError.
Tensor logit(const Tensor& x, LogitOptions options = {});
/// x log(y), and 0 where x is 0 unless y is NaN.
Tensor xlogy(const Tensor& x, const Tensor& y);
/// The error function 2/sqrt(pi) * integral of exp(-t^2) from 0 to x.
Tensor erf(const Tensor& x);
/// 1 - erf(x), which keeps its digits where x is large.
Tensor erfc(const Tensor& x);
/// The logarithm of the gamma function for x > 0, infinite at 0; NaN below, where PyTorch has values. Near
/// its zeros at 1 and 2 the error is that of a number near 1.
Tensor lgamma(const Tensor& x);
Tensor digamma(const Tensor& x);  ///< the derivative of lgamma
/// The derivative of order n of digamma, 0 <= n <= 20, else ValueError.
Tensor polygamma(Integer n, const Tensor& x);

// Own type.
Tensor square(const Tensor& x);  ///< x * x
Tensor abs(const Tensor& x);     ///< |x|; derivative 0 at 0, NaN at NaN (PyTorch: 0)

/// Piecewise constant: their derivative is 0.
Tensor sign(const Tensor& x);   ///< -1, 0 or 1; NaN at NaN (PyTorch: 0)
Tensor floor(const Tensor& x);  ///< the largest whole number of at most x
Tensor ceil(const Tensor& x);   ///< the smallest whole number of at least x
Tensor round(const Tensor& x);  ///< the nearest whole number, halves to even ones
Tensor trunc(const Tensor& x);  ///< the next whole number towards 0

/// Integers to an integer power wrap around; a negative exponent gives 1 / base^|exponent| cut to an integer,
/// which is 0 unless the base is 1 or -1; a negative whole number as exponent of integers throws ValueError.
/// Exponents 2, 3, 1/2, -1/2, -1 and -2 cost no more than the products and roots they stand for.
/// The exponent's derivative base^exponent * log(base) is taken as 0 where the base is 0 and the exponent not
/// negative.
Tensor pow(const Tensor& base, const Tensor& exponent);  ///< base^exponent
Tensor pow(const Tensor& base, Number exponent);
Tensor pow(Number base, const Tensor& exponent);

struct NanToNumOptions {
  double nan = 0;                                  ///< in place of NaN
  std::optional<double> posinf = {}, neginf = {};  ///< of infinities; none: the largest finite number
};
/// x with numbers in place of NaN and infinities, where no gradient passes; integers and bool as they are.
Tensor nan_to_num(const Tensor& x, NanToNumOptions options = {});

/// a - floor(a / b) * b: the sign of b, as Python's %. Throws ValueError when an integer is divided by 0. The
/// derivative by b is -floor(a / b).
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, Number b);
Tensor remainder(Number a, const Tensor& b);
/// a - trunc(a / b) * b: the sign of a, as C's %. Throws as remainder. The derivative by b is -trunc(a / b).
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, Number b);
Tensor fmod(Number a, const Tensor& b);
/// floor(a / b), of integers an integer, as Python's //. The smallest integer over -1 wraps around. Throws as
/// remainder. Piecewise constant: its derivative is 0 (PyTorch: none).
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, Number b);
Tensor floor_divide(Number a, const Tensor& b);

/// The larger and the smaller one; NaN where either is. These take bool, too. Where a = b, each gets half of
/// the gradient, and all of it where one is NaN: as in PyTorch.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);  ///< the smaller one; NaN where either is
Tensor maximum(const Tensor& a, Number b);
Tensor minimum(const Tensor& a, Number b);
inline Tensor maximum(Number a, const Tensor& b) { return maximum(b, a); }
inline Tensor minimum(Number a, const Tensor& b) { return minimum(b, a); }

/// min where x is below it, max where x is above it: `clamp(x, {.min = 0, .max = 6})`; max where min > max;
/// NaN where x or a bound is NaN. A floating bound makes integers floating, as in arithmetic. Throws
/// ValueError when there is no bound. The gradient passes within the bounds, themselves included;
/// none passes a NaN.
Tensor clamp(const Tensor& x, ClampOptions bounds);
inline Tensor clamp(const Tensor& x, Number min, Number max) { return clamp(x, {.min = min, .max = max}); }

/// a + weight * (b - a); exactly b for a weight of 1.
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp(const Tensor& a, const Tensor& b, Number weight);

/// In place, keeping `x`'s type (DTypeError where that cannot hold the result). They return `x`.
const Tensor& clamp_(const Tensor& x, ClampOptions bounds);
const Tensor& lerp_(const Tensor& x, const Tensor& b, const Tensor& weight);
const Tensor& lerp_(const Tensor& x, const Tensor& b, Number weight);

}  // namespace pleat
