// Host and device.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// Division with a rest, of math.h.

namespace pleat {
namespace {

using ops::number_like;

/// With the sign of the divisor, as Python has it.
struct Remainder {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(int32_t)) {
      // Exact, and without integer division, of which there are no vector instructions.
      const double x = a, y = b;
      const double rest = x - std::trunc(x / y) * y;
      return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    } else if constexpr (std::is_integral_v<T>) {
      if (b == -1) return 0;  // the smallest integer % -1 overflows
      const T rest = a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    } else {
      const T rest = fmod(a, b);
      return ((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest;
    }
  }
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T a, T b) {
    return remainder_is_near(a, b);
  }
};

/// With the sign of the dividend, as C has it.
struct Fmod {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(int32_t)) {
      const double x = a, y = b;
      return static_cast<T>(x - std::trunc(x / y) * y);
    } else if constexpr (std::is_integral_v<T>) {
      return b == -1 ? 0 : a % b;
    } else {
      return fmod(a, b);
    }
  }
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T a, T b) {
    return remainder_is_near(a, b);
  }
};

/// The whole number below a / b. Floating, from the rest, as a / b itself may be rounded up to the next one.
struct FloorDivide {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(int32_t)) {
      // The quotient of two such is never rounded to a whole number. int64_t holds the one that T does not.
      return static_cast<T>(
          static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
    } else if constexpr (std::is_integral_v<T>) {
      if (b == -1) return static_cast<T>(0 - ops::wrapping(a));
      return a / b - static_cast<T>(a % b != 0 && (a < 0) != (b < 0));
    } else {
      const T rest = fmod(a, b);
      const T quotient = (a - rest) / b;
      const T below = ((rest != 0) & ((rest < 0) != (b < 0))) ? quotient - 1 : quotient;
      // A whole number but for rounding.
      const T whole = std::rint(below);
      return b == 0 ? a / b : whole == 0 ? std::copysign(T(0), a / b) : whole;
    }
  }
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T a, T b) {
    return remainder_is_near(a, b);
  }
};

void check_integer_divisor(const char* op, const Tensor& a, const Tensor& b) {
  if (is_floating(promote(a.dtype(), b.dtype()))) return;
  const Tensor zeros = ops::to_device(equal(b, 0), {});
  const bool* is_zero = zeros.data<bool>();
  check<ValueError>(std::find(is_zero, is_zero + zeros.numel(), true) == is_zero + zeros.numel(),
                    "{}: integers cannot be divided by 0", op);
}

}  // namespace

Tensor remainder(const Tensor& a, const Tensor& b) {
  const Call call("remainder", {a, b});
  check_integer_divisor("remainder", a, b);
  const Tensor y = ops::binary("remainder", a, b, Remainder{});
  return call.result(y, grad_of(a, [](const Tensor& dy) { return dy; }),
                     grad_of(b, [a = saved(a), b = saved(b), y = saved(y)](const Tensor& dy) {
                       // The quotient is a whole number, and constant piece by piece; -1 where b is infinite
                       // and of the other sign, which makes it the remainder.
                       const Tensor quotient =
                           no_grad([&] { return where(isinf(*y), -1, round((widened(*a) - *y) / *b)); });
                       return -(dy * quotient);
                     }));
}

Tensor remainder(const Tensor& a, Number b) { return remainder(a, number_like(b, a, "remainder")); }
Tensor remainder(Number a, const Tensor& b) { return remainder(number_like(a, b, "remainder"), b); }

Tensor fmod(const Tensor& a, const Tensor& b) {
  const Call call("fmod", {a, b});
  check_integer_divisor("fmod", a, b);
  const Tensor y = ops::binary("fmod", a, b, Fmod{});
  return call.result(y, grad_of(a, [](const Tensor& dy) { return dy; }),
                     grad_of(b, [a = saved(a), b = saved(b), y = saved(y)](const Tensor& dy) {
                       const Tensor quotient = no_grad([&] { return round((widened(*a) - *y) / *b); });
                       return -(dy * quotient);
                     }));
}

Tensor fmod(const Tensor& a, Number b) { return fmod(a, number_like(b, a, "fmod")); }
Tensor fmod(Number a, const Tensor& b) { return fmod(number_like(a, b, "fmod"), b); }

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  const Call call("floor_divide", {a, b});
  check_integer_divisor("floor_divide", a, b);
  const auto nothing = [](const Tensor& dy) { return zeros_like(dy); };
  return call.result(ops::binary("floor_divide", a, b, FloorDivide{}), grad_of(a, nothing),
                     grad_of(b, nothing));
}

Tensor floor_divide(const Tensor& a, Number b) { return floor_divide(a, number_like(b, a, "floor_divide")); }
Tensor floor_divide(Number a, const Tensor& b) { return floor_divide(number_like(a, b, "floor_divide"), b); }

}  // namespace pleat
