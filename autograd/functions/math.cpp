// Host and device.
#include "pleat/autograd/functions/math.h"

#include <cmath>
#include <numbers>
#include <type_traits>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/functions/pointwise.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"

namespace pleat {
namespace {

using ops::number_like;

struct Exp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return exp(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * y;
  }
};

struct Exp2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return exp2(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * y * Weak(std::numbers::ln2);
  }
};

struct Expm1 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return expm1(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (y + 1);
  }
};

struct Log {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / x;
  }
};

struct Log1p {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log1p(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (x + 1);
  }
};

struct Log2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log2(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (x * Weak(std::numbers::ln2));
  }
};

struct Log10 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log10(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (x * Weak(std::numbers::ln10));
  }
};

struct Sqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sqrt(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy / (y * 2);
  }
};

struct Rsqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return rsqrt(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (y * square(y)) * Weak(-0.5);
  }
};

struct Reciprocal {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return 1 / x;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return -(dy * square(y));
  }
};

struct Sin {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sin(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * cos(x);
  }
};

struct Cos {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return cos(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return -(dy * sin(x));
  }
};

struct Tan {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return tan(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (square(y) + 1);
  }
};

struct Asin {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return asin(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * rsqrt(1 - square(x));
  }
};

struct Acos {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return acos(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return -(dy * rsqrt(1 - square(x)));
  }
};

struct Atan {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return atan(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (square(x) + 1);
  }
};

struct Erf {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return erf(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * exp(-square(x)) * Weak(2 * std::numbers::inv_sqrtpi);
  }
};

struct Erfc {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return erfc(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * exp(-square(x)) * Weak(-2 * std::numbers::inv_sqrtpi);
  }
};

struct Square {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return static_cast<T>(ops::wrapping(x) * ops::wrapping(x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * (x * 2);
  }
};

struct Abs {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else
      return x < T(0) ? static_cast<T>(0 - ops::wrapping(x)) : x;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * sign(x);
  }
};

struct Sign {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sign(x);
  }
};

struct Floor {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::floor(x);
  }
};

struct Ceil {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::ceil(x);
  }
};

struct Round {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::rint(x);
  }
};

struct Trunc {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::trunc(x);
  }
};

/// Integers have nothing to round.
template <class F>
Tensor rounded(const char* op, const Tensor& x, const F& formula) {
  check<DTypeError>(x.dtype() != boolean, "{}: needs numbers, got bool", op);
  if (is_floating(x.dtype())) return pointwise(op, x, formula);
  const RecordOp range(op, x);
  return record_pointwise(op, ops::copy(x), x, formula);
}

struct ReciprocalSquare {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return 1 / (a * a);
  }
};

struct Cube {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a * a * a;
  }
};

template <class T>
PLEAT_HOST_DEVICE T integer_power(T base, T exponent) {
  if (exponent < 0)
    return base == 1 ? T(1) : base == static_cast<T>(-1) ? (exponent % 2 == 0 ? T(1) : base) : T(0);
  auto result = ops::wrapping(T(1));
  auto factor = ops::wrapping(base);
  for (auto left = ops::wrapping(exponent); left != 0; left >>= 1) {
    if ((left & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

struct Power {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base, T exponent) const {
    if constexpr (std::is_integral_v<T>)
      return integer_power(base, exponent);
    else
      return pow(base, exponent);
  }
  /// x^0 is constant in the base; a base of 1 keeps 0 * 0^-1 = NaN out.
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& base, const T& exponent) const {
    const T safe = where(exponent == 0, where(base == 0, 1, where(base != base, 1, base)), base);
    return dy * exponent * pow(safe, exponent - 1);
  }
};

/// What goes to the exponent, given also the result y.
struct PowerOfExponent {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& base, const T& exponent, const T& y) const {
    return dy * y * log(where(base == 0, where(exponent >= 0, 1, base), base));
  }
};

struct PowerOf {
  double exponent;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base) const {
    return pow(base, static_cast<T>(exponent));
  }
};

struct Itself {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base) const {
    return base;
  }
};

/// Calls `use` with the functor that raises to the power e.
template <class Use>
Tensor with_power(double e, const Use& use) {
  if (e == 2) return use(Square{});
  if (e == 3) return use(Cube{});
  if (e == 1) return use(Itself{});
  if (e == 0.5) return use(Sqrt{});
  if (e == -0.5) return use(Rsqrt{});
  if (e == -1) return use(Reciprocal{});
  if (e == -2) return use(ReciprocalSquare{});
  return use(PowerOf{e});
}

Tensor raised(const Tensor& base, Number exponent) {
  if (!is_floating(promote_with_number(base.dtype(), exponent))) {
    check<ValueError>(
        exponent.to<int64_t>() >= 0,
        "pow: integers cannot be raised to the negative integer power {}; convert them with to(float32)",
        exponent.to<int64_t>());
    return ops::binary("pow", base, number_like(exponent, base, "pow"), Power{});
  }
  return with_power(exponent.to<double>(),
                    [&](const auto& f) { return ops::unary_floating("pow", base, f); });
}

/// The gradient of a power with the exponent e; `power` raises to e - 1.
template <class F>
struct PowerBackward {
  F power;
  double e;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T base) const {
    return dy * (power(base) * static_cast<T>(e));
  }
  Tensor operator()(const Tensor& dy, const Tensor& base) const { return dy * (pow(base, e - 1) * e); }
};

}  // namespace

Tensor exp(const Tensor& x) { return pointwise("exp", autocast_to_float32(x), Exp{}); }
Tensor exp2(const Tensor& x) { return pointwise("exp2", x, Exp2{}); }
Tensor expm1(const Tensor& x) { return pointwise("expm1", autocast_to_float32(x), Expm1{}); }
Tensor log(const Tensor& x) { return pointwise("log", autocast_to_float32(x), Log{}); }
Tensor log1p(const Tensor& x) { return pointwise("log1p", autocast_to_float32(x), Log1p{}); }
Tensor log2(const Tensor& x) { return pointwise("log2", autocast_to_float32(x), Log2{}); }
Tensor log10(const Tensor& x) { return pointwise("log10", autocast_to_float32(x), Log10{}); }
Tensor sqrt(const Tensor& x) { return pointwise("sqrt", x, Sqrt{}); }
Tensor rsqrt(const Tensor& x) { return pointwise("rsqrt", autocast_to_float32(x), Rsqrt{}); }
Tensor reciprocal(const Tensor& x) { return pointwise("reciprocal", autocast_to_float32(x), Reciprocal{}); }
Tensor sin(const Tensor& x) { return pointwise("sin", x, Sin{}); }
Tensor cos(const Tensor& x) { return pointwise("cos", x, Cos{}); }
Tensor tan(const Tensor& x) { return pointwise("tan", autocast_to_float32(x), Tan{}); }
Tensor asin(const Tensor& x) { return pointwise("asin", autocast_to_float32(x), Asin{}); }
Tensor acos(const Tensor& x) { return pointwise("acos", autocast_to_float32(x), Acos{}); }
Tensor atan(const Tensor& x) { return pointwise("atan", x, Atan{}); }
Tensor erf(const Tensor& x) { return pointwise("erf", x, Erf{}); }
Tensor erfc(const Tensor& x) { return pointwise("erfc", x, Erfc{}); }

Tensor square(const Tensor& x) { return pointwise_number("square", x, Square{}); }
Tensor abs(const Tensor& x) { return pointwise_number("abs", x, Abs{}); }
Tensor sign(const Tensor& x) { return pointwise_number("sign", x, Sign{}); }
Tensor floor(const Tensor& x) { return rounded("floor", x, Floor{}); }
Tensor ceil(const Tensor& x) { return rounded("ceil", x, Ceil{}); }
Tensor round(const Tensor& x) { return rounded("round", x, Round{}); }
Tensor trunc(const Tensor& x) { return rounded("trunc", x, Trunc{}); }

Tensor pow(const Tensor& any_base, const Tensor& any_exponent) {
  const Tensor base = autocast_to_float32(any_base);
  const Tensor exponent = autocast_to_float32(any_exponent);
  const Tensor y = ops::binary("pow", base, exponent, Power{});
  return record("pow", y,
                {grad_of(base,
                         [a = saved(base), e = saved(exponent)](const Tensor& dy) {
                           return detail::run_backward("pow", detail::BackwardFirst<Power>{}, dy, *a, *e);
                         }),
                 grad_of(exponent, [a = saved(base), e = saved(exponent), y = saved(y)](const Tensor& dy) {
                   return detail::run_backward("pow", PowerOfExponent{}, dy, *a, *e, *y);
                 })});
}

Tensor pow(const Tensor& any_base, Number exponent) {
  const Tensor base = autocast_to_float32(any_base);
  const auto e = exponent.to<double>();
  const TracedCall call(
      "pow",
      [&] {
        return Attributes{{"exponent", e}};
      },
      base);
  return call.gives(record(
      "pow", raised(base, exponent), {grad_of(base, [x = saved(base), e](const Tensor& dy) {
        if (e == 0) return zeros_like(dy);
        return with_power(e - 1, [&](const auto& power) {
          return detail::run_backward("pow", PowerBackward<std::decay_t<decltype(power)>>{power, e}, dy, *x);
        });
      })}));
}

Tensor pow(Number base, const Tensor& any_exponent) {
  const Tensor exponent = autocast_to_float32(any_exponent);
  return pow(number_like(base, exponent, "pow"), exponent);
}

}  // namespace pleat
