#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/math.h"

/// Functions of math.h with more than one operand.

namespace pleat::ops {
namespace {

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0)
    return base == 1 ? T(1) : base == static_cast<T>(-1) ? (exponent % 2 == 0 ? T(1) : base) : T(0);
  auto result = wrapping(T(1));
  auto factor = wrapping(base);
  for (auto left = wrapping(exponent); left != 0; left >>= 1) {
    if ((left & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

constexpr auto power = []<class T>(T base, T exponent) {
  if constexpr (std::is_integral_v<T>)
    return integer_power(base, exponent);
  else
    return std::pow(base, exponent);
};

constexpr auto python_remainder = []<class T>(T a, T b) -> T {
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(a % b);
  } else if constexpr (std::is_integral_v<T>) {
    if (b == -1) return 0;  // the smallest integer % -1 overflows
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

constexpr auto interpolated = []<class T>(T a, T b, T weight) {
  // From the nearer end, so that weights 0 and 1 give a and b themselves.
  return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
};

template <class F>
Tensor binary_ordered(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor out = binary_result(op, a, b, dtype);
  dispatch_ordered(op, dtype, [&]<class T>(Type<T>) { map_into<T, T, T>(op, out, a, b, f); });
  return out;
}

/// The nearest value of T.
template <class T>
T saturated(const Number& number) {
  if constexpr (std::is_integral_v<T>) {
    constexpr int64_t low = std::numeric_limits<T>::min();
    constexpr int64_t high = std::numeric_limits<T>::max();
    return static_cast<T>(std::clamp(number.to<int64_t>(), low, high));
  } else {
    return number.to<T>();
  }
}

template <class T>
struct Bounds {
  T low, high;

  explicit Bounds(const ClampOptions& options)
      : low(options.min ? saturated<T>(*options.min) : lowest()),
        high(options.max ? saturated<T>(*options.max) : highest()) {}

  static constexpr T lowest() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::min();
    else
      return -std::numeric_limits<T>::infinity();
  }
  static constexpr T highest() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::max();
    else
      return std::numeric_limits<T>::infinity();
  }
};

DType clamp_dtype(const char* op, const Tensor& x, const ClampOptions& bounds) {
  check<ValueError>(bounds.min || bounds.max, "{}: needs a bound, min or max or both", op);
  DType dtype = x.dtype();
  if (bounds.min) dtype = promote_with_number(dtype, *bounds.min);
  if (bounds.max) dtype = promote_with_number(dtype, *bounds.max);
  return dtype;
}

}  // namespace

Tensor pow(const Tensor& base, const Tensor& exponent) { return binary("pow", base, exponent, power); }

Tensor pow(const Tensor& base, Number exponent) {
  if (!is_floating(promote_with_number(base.dtype(), exponent))) {
    check<ValueError>(
        exponent.to<int64_t>() >= 0,
        "pow: integers cannot be raised to the negative integer power {}; convert them with to(float32)",
        exponent.to<int64_t>());
    return pow(base, number_like(exponent, base));
  }
  const auto e = exponent.to<double>();
  const auto apply = [&](const auto& f) { return unary_floating("pow", base, f); };
  if (e == 2) return apply([](auto a) { return a * a; });
  if (e == 3) return apply([](auto a) { return a * a * a; });
  if (e == 1) return copy(cast(base, floating_result(base.dtype())));
  if (e == 0.5) return apply([](auto a) { return std::sqrt(a); });
  if (e == -0.5) return apply([](auto a) { return 1 / std::sqrt(a); });
  if (e == -1) return apply([](auto a) { return 1 / a; });
  if (e == -2) return apply([](auto a) { return 1 / (a * a); });
  return apply([e]<class T>(T a) { return std::pow(a, static_cast<T>(e)); });
}

Tensor pow(Number base, const Tensor& exponent) { return pow(number_like(base, exponent), exponent); }

Tensor remainder(const Tensor& a, const Tensor& b) {
  if (!is_floating(promote(a.dtype(), b.dtype()))) {
    const Tensor zeros = equal(b, 0);
    const bool* is_zero = zeros.data<bool>();
    check<ValueError>(std::find(is_zero, is_zero + zeros.numel(), true) == is_zero + zeros.numel(),
                      "remainder: integers cannot be divided by 0");
  }
  return binary("remainder", a, b, python_remainder);
}

Tensor remainder(const Tensor& a, Number b) { return remainder(a, number_like(b, a)); }

Tensor maximum(const Tensor& a, const Tensor& b) {
  return binary_ordered("maximum", a, b, [](auto p, auto q) { return p > q || p != p ? p : q; });
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return binary_ordered("minimum", a, b, [](auto p, auto q) { return p < q || p != p ? p : q; });
}

void clamp_into(const Tensor& out, const Tensor& x, ClampOptions bounds) {
  dispatch_number("clamp", clamp_dtype("clamp", x, bounds), [&]<class T>(Type<T>) {
    map_into<T, T>("clamp", out, x, [b = Bounds<T>(bounds)](T a) {
      const T raised = a < b.low ? b.low : a;
      return raised > b.high ? b.high : raised;
    });
  });
}

Tensor clamp(const Tensor& x, ClampOptions bounds) {
  const Tensor out = unary_result(x, clamp_dtype("clamp", x, bounds));
  clamp_into(out, x, bounds);
  return out;
}

Tensor clamp_backward(const Tensor& dy, const Tensor& x, ClampOptions bounds) {
  clamp_dtype("clamp", x, bounds);
  const Tensor out = binary_result("clamp", dy, x, promote(dy.dtype(), x.dtype()));
  dispatch_floating("clamp", out.dtype(), [&]<class T>(Type<T>) {
    map_into<T, T, T>("clamp", out, dy, x,
                      [b = Bounds<T>(bounds)](T g, T a) { return (a < b.low) | (a > b.high) ? T(0) : g; });
  });
  return out;
}

void lerp_into(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& weight) {
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  dispatch_floating("lerp", floating_result(dtype),
                    [&]<class T>(Type<T>) { map_into<T, T, T, T>("lerp", out, a, b, weight, interpolated); });
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const Shape shape = broadcast(broadcast(a.shape(), b.shape(), "lerp"), weight.shape(), "lerp");
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  const std::array inputs = {a, b, weight};
  const Tensor out = empty_as(inputs, shape, floating_result(dtype));
  lerp_into(out, a, b, weight);
  return out;
}

}  // namespace pleat::ops
