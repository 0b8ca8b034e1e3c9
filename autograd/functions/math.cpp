#include "pleat/autograd/functions/math.h"

#include <numbers>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/select.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat {
namespace {

using ops::number_like;

/// The derivative of what is constant piece by piece: zeros rather than nothing, so that every input has a
/// gradient.
Derivative no_slope(const Tensor& x) {
  return grad_of(x, [](const Tensor& dy) { return zeros_like(dy); });
}

/// What goes to one of two that are compared: half at a tie, nothing where it loses, else (with a NaN) all.
Tensor winners_share(const Tensor& dy, const Tensor& loses, const Tensor& ties) {
  return where(loses, 0, where(ties, dy * 0.5, dy));
}

/// clamp_backward is linear in dy and its own adjoint.
Tensor clamp_backward(const Tensor& dy, const Tensor& x, const ClampOptions& bounds) {
  return record(
      "clamp_backward", ops::clamp_backward(dy, x, bounds),
      {grad_of(dy, [x = saved(x), bounds](const Tensor& ddx) { return clamp_backward(ddx, *x, bounds); })});
}

}  // namespace

Tensor exp(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  const Tensor y = ops::exp(x);
  return record("exp", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy * *y; })});
}

Tensor expm1(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  const Tensor y = ops::expm1(x);
  return record("expm1", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy * (*y + 1); })});
}

Tensor log(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("log", ops::log(x), {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy / *x; })});
}

Tensor log1p(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("log1p", ops::log1p(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy / (*x + 1); })});
}

Tensor log2(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("log2", ops::log2(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy / (*x * std::numbers::ln2); })});
}

Tensor log10(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("log10", ops::log10(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy / (*x * std::numbers::ln10); })});
}

Tensor sqrt(const Tensor& x) {
  const Tensor y = ops::sqrt(x);
  return record("sqrt", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy / (*y * 2); })});
}

Tensor rsqrt(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  const Tensor y = ops::rsqrt(x);
  return record("rsqrt", y,
                {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy * pow(*y, 3) * -0.5; })});
}

Tensor reciprocal(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  const Tensor y = ops::reciprocal(x);
  return record("reciprocal", y,
                {grad_of(x, [y = saved(y)](const Tensor& dy) { return -(dy * square(*y)); })});
}

Tensor sin(const Tensor& x) {
  return record("sin", ops::sin(x), {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * cos(*x); })});
}

Tensor cos(const Tensor& x) {
  return record("cos", ops::cos(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return -(dy * sin(*x)); })});
}

Tensor tan(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  const Tensor y = ops::tan(x);
  return record("tan", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy * (square(*y) + 1); })});
}

Tensor asin(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("asin", ops::asin(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * rsqrt(1 - square(*x)); })});
}

Tensor acos(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("acos", ops::acos(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return -(dy * rsqrt(1 - square(*x))); })});
}

Tensor atan(const Tensor& x) {
  return record("atan", ops::atan(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy / (square(*x) + 1); })});
}

Tensor atan2(const Tensor& y, const Tensor& x) {
  return record("atan2", ops::atan2(y, x),
                {grad_of(y, [y = saved(y),
                             x = saved(x)](const Tensor& dy) { return dy * *x / (square(*x) + square(*y)); }),
                 grad_of(x, [y = saved(y), x = saved(x)](const Tensor& dy) {
                   return -(dy * *y / (square(*x) + square(*y)));
                 })});
}

Tensor sinh(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("sinh", ops::sinh(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * cosh(*x); })});
}

Tensor cosh(const Tensor& input) {
  const Tensor x = autocast_to_float32(input);
  return record("cosh", ops::cosh(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * sinh(*x); })});
}

Tensor tanh(const Tensor& x) {
  const Tensor y = ops::tanh(x);
  return record("tanh", y, {grad_of(x, [y = saved(y)](const Tensor& dy) {
                  return grad_enabled() ? dy * (1 - square(*y)) : ops::tanh_backward(dy, *y);
                })});
}

Tensor erf(const Tensor& x) {
  return record("erf", ops::erf(x), {grad_of(x, [x = saved(x)](const Tensor& dy) {
                  return dy * exp(-square(*x)) * (2 * std::numbers::inv_sqrtpi);
                })});
}

Tensor square(const Tensor& x) {
  return record("square", ops::square(x),
                {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * (*x * 2); })});
}

Tensor abs(const Tensor& x) {
  return record("abs", ops::abs(x), {grad_of(x, [x = saved(x)](const Tensor& dy) { return dy * sign(*x); })});
}

Tensor sign(const Tensor& x) { return record("sign", ops::sign(x), {no_slope(x)}); }
Tensor floor(const Tensor& x) { return record("floor", ops::floor(x), {no_slope(x)}); }
Tensor ceil(const Tensor& x) { return record("ceil", ops::ceil(x), {no_slope(x)}); }
Tensor round(const Tensor& x) { return record("round", ops::round(x), {no_slope(x)}); }
Tensor trunc(const Tensor& x) { return record("trunc", ops::trunc(x), {no_slope(x)}); }

Tensor pow(const Tensor& any_base, const Tensor& any_exponent) {
  const Tensor base = autocast_to_float32(any_base);
  const Tensor exponent = autocast_to_float32(any_exponent);
  const Tensor y = ops::pow(base, exponent);
  return record("pow", y,
                {grad_of(base,
                         [a = saved(base), e = saved(exponent)](const Tensor& dy) {
                           // x^0 is constant in the base; a base of 1 keeps 0 * 0^-1 = NaN out.
                           const Tensor safe = where(*e == 0 && (*a == 0 || isnan(*a)), 1, *a);
                           return dy * *e * pow(safe, *e - 1);
                         }),
                 grad_of(exponent, [a = saved(base), e = saved(exponent), y = saved(y)](const Tensor& dy) {
                   return dy * *y * log(where(*a == 0 && *e >= 0, 1, *a));
                 })});
}

Tensor pow(const Tensor& any_base, Number exponent) {
  const Tensor base = autocast_to_float32(any_base);
  const auto e = exponent.to<double>();
  const RecordOp range("pow", base);
  return record("pow", ops::pow(base, exponent), {grad_of(base, [x = saved(base), e](const Tensor& dy) {
                  if (e == 0) return zeros_like(dy);
                  return dy * (pow(*x, e - 1) * e);
                })});
}

Tensor pow(Number base, const Tensor& any_exponent) {
  const Tensor exponent = autocast_to_float32(any_exponent);
  return pow(number_like(base, exponent, "pow"), exponent);
}

Tensor remainder(const Tensor& a, const Tensor& b) {
  const Tensor y = ops::remainder(a, b);
  return record("remainder", y,
                {grad_of(a, [](const Tensor& dy) { return dy; }),
                 grad_of(b, [a = saved(a), b = saved(b), y = saved(y)](const Tensor& dy) {
                   // The quotient is a whole number, and constant piece by piece; -1 where b is infinite and
                   // of the other sign, which makes it the remainder.
                   const Tensor quotient =
                       no_grad([&] { return where(isinf(*y), -1, round((*a - *y) / *b)); });
                   return -(dy * quotient);
                 })});
}

Tensor remainder(const Tensor& a, Number b) { return remainder(a, number_like(b, a, "remainder")); }
Tensor remainder(Number a, const Tensor& b) { return remainder(number_like(a, b, "remainder"), b); }

Tensor maximum(const Tensor& a, const Tensor& b) {
  return record("maximum", ops::maximum(a, b),
                {grad_of(a, [a = saved(a), b = saved(b)](
                                const Tensor& dy) { return winners_share(dy, *a < *b, *a == *b); }),
                 grad_of(b, [a = saved(a), b = saved(b)](const Tensor& dy) {
                   return winners_share(dy, *b < *a, *a == *b);
                 })});
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return record("minimum", ops::minimum(a, b),
                {grad_of(a, [a = saved(a), b = saved(b)](
                                const Tensor& dy) { return winners_share(dy, *a > *b, *a == *b); }),
                 grad_of(b, [a = saved(a), b = saved(b)](const Tensor& dy) {
                   return winners_share(dy, *b > *a, *a == *b);
                 })});
}

Tensor maximum(const Tensor& a, Number b) { return maximum(a, number_like(b, a)); }
Tensor minimum(const Tensor& a, Number b) { return minimum(a, number_like(b, a)); }

Tensor clamp(const Tensor& x, ClampOptions bounds) {
  return record(
      "clamp", ops::clamp(x, bounds),
      {grad_of(x, [x = saved(x), bounds](const Tensor& dy) { return clamp_backward(dy, *x, bounds); })});
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  return record("lerp", ops::lerp(a, b, weight),
                {grad_of(a, [w = saved(weight)](const Tensor& dy) { return dy * (1 - *w); }),
                 grad_of(b, [w = saved(weight)](const Tensor& dy) { return dy * *w; }),
                 grad_of(weight, [a = saved(a), b = saved(b)](const Tensor& dy) { return dy * (*b - *a); })});
}

Tensor lerp(const Tensor& a, const Tensor& b, Number weight) {
  return lerp(a, b, number_like(weight.to<double>(), a, "lerp"));
}

const Tensor& clamp_(const Tensor& x, ClampOptions bounds) {
  for (const auto& bound : {bounds.min, bounds.max})
    check<DTypeError>(!bound || promote_with_number(x.dtype(), *bound) == x.dtype(),
                      "clamp_: a floating bound gives a floating result, which a tensor of {} cannot hold; "
                      "convert it with to(float32)",
                      x.dtype());
  if (changes_tape(x))
    replace_in_place("clamp_", x, [&](const Tensor& before) { return clamp(before, bounds); });
  else
    ops::clamp_into(x, x, bounds);
  return x;
}

const Tensor& lerp_(const Tensor& x, const Tensor& b, const Tensor& weight) {
  check<DTypeError>(is_floating(x.dtype()), "lerp_: needs a floating type, got {}", x.dtype());
  if (changes_tape(x, {b, weight}))
    replace_in_place("lerp_", x, [&](const Tensor& before) { return lerp(before, b, weight).to(x.dtype()); });
  else
    ops::lerp_into(x, x, b, weight);
  return x;
}

const Tensor& lerp_(const Tensor& x, const Tensor& b, Number weight) {
  return lerp_(x, b, number_like(weight.to<double>(), x, "lerp_"));
}

}  // namespace pleat
