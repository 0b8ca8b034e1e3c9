// Host and device.
#include <type_traits>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// pow of math.h.

namespace pleat {
namespace {

using ops::number_like;

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
    return dy * (exponent * pow(safe, exponent - 1));  // not inf * 0 in second derivatives
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& base, const T& exponent) const {
    return dy * pow(base, exponent) * log(where(base == 0, where(exponent >= 0, 1, base), base));
  }
};

struct PowerOf {
  double exponent;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base) const {
    return pow(base, static_cast<T>(exponent));
  }
};

/// Powers that need no pow(): with the exponent halves / 2, which is 3, 2, 1, 1/2, -1/2, -1 or -2.
template <int halves>
struct PowerOfHalves {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base) const {
    if constexpr (halves == 6)
      return base * base * base;
    else if constexpr (halves == 4)
      return base * base;
    else if constexpr (halves == 2)
      return base;
    else if constexpr (halves == 1)
      return sqrt(base);
    else if constexpr (halves == -1)
      return rsqrt(base);
    else if constexpr (halves == -2)
      return 1 / base;
    else
      return 1 / base * (1 / base);  // the square may vanish
  }
};

/// Calls `use` with the functor that raises to the power e.
template <class Use>
Tensor with_power(double e, const Use& use) {
  if (e == 2) return use(PowerOfHalves<4>{});
  if (e == 3) return use(PowerOfHalves<6>{});
  if (e == 1) return use(PowerOfHalves<2>{});
  if (e == 0.5) return use(PowerOfHalves<1>{});
  if (e == -0.5) return use(PowerOfHalves<-1>{});
  if (e == -1) return use(PowerOfHalves<-2>{});
  if (e == -2) return use(PowerOfHalves<-4>{});
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

Tensor pow(const Tensor& any_base, const Tensor& any_exponent) {
  const Call call("pow", {any_base, any_exponent}, {}, Autocasts::to_float32);
  const Tensor &base = call.input(0), &exponent = call.input(1);
  return call.result(ops::binary("pow", base, exponent, Power{}),
                     derivatives_of("pow", base, exponent, Power{}));
}

Tensor pow(const Tensor& any_base, Number exponent) {
  const auto e = exponent.to<double>();
  const Call call("pow", {any_base}, {{"exponent", e}}, Autocasts::to_float32);
  const Tensor& base = call.input(0);
  return call.result(
      raised(base, exponent), grad_of(base, [x = saved(base), e](const Tensor& dy) {
        if (e == 0) return zeros_like(dy);
        return with_power(e - 1, [&](const auto& power) {
          return detail::run_backward("pow", PowerBackward<std::decay_t<decltype(power)>>{power, e}, dy, *x);
        });
      }));
}

Tensor pow(Number base, const Tensor& any_exponent) {
  const Tensor exponent = autocast_to_float32(any_exponent);
  return pow(number_like(base, exponent, "pow"), exponent);
}

}  // namespace pleat
