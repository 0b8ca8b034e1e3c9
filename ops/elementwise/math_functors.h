// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/number.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/vector_math.h"

/// The functors of math.h.

namespace pleat::ops {

struct Exp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::exp(a);
  }
};

struct Expm1 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::expm1(a);
  }
};

struct Log {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::log(a);
  }
};

struct Log1p {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::log1p(a);
  }
};

struct Log2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::log2(a);
  }
};

struct Log10 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::log10(a);
  }
};

struct Sqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::sqrt(a);
  }
};

struct Rsqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return 1 / std::sqrt(a);
  }
};

struct Reciprocal {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return 1 / a;
  }
};

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

struct Sin {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::sin(a);
  }
};

struct Cos {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::cos(a);
  }
};

struct Tan {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::tan(a);
  }
};

struct Asin {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::asin(a);
  }
};

struct Acos {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::acos(a);
  }
};

struct Atan {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::atan(a);
  }
};

struct Sinh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::sinh(a);
  }
};

struct Cosh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::cosh(a);
  }
};

struct Tanh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::tanh(a);
  }
};

struct Erf {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::erf(a);
  }
};

struct Floor {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::floor(a);
  }
};

struct Ceil {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::ceil(a);
  }
};

struct Round {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::rint(a);
  }
};

struct Trunc {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return std::trunc(a);
  }
};

struct Abs {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(a);
    else
      return a < T(0) ? static_cast<T>(0 - wrapping(a)) : a;
  }
};

struct Sign {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a > T(0) ? T(1) : a < T(0) ? static_cast<T>(-1) : a;
  }
};

struct Square {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return static_cast<T>(wrapping(a) * wrapping(a));
  }
};

struct Atan2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
};

struct TanhBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T y) const {
    return dy * (1 - y * y);
  }
};

template <class T>
PLEAT_HOST_DEVICE T integer_power(T base, T exponent) {
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

struct Power {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base, T exponent) const {
    if constexpr (std::is_integral_v<T>)
      return integer_power(base, exponent);
    else
      return std::pow(base, exponent);
  }
};

struct PowerOf {
  double exponent;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T base) const {
    return std::pow(base, static_cast<T>(exponent));
  }
};

/// With the sign of the divisor, as Python has it.
struct Remainder {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
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
  }
};

struct Maximum {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct Minimum {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// From the nearer end, so that weights 0 and 1 give a and b themselves.
struct Lerp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b, T weight) const {
    return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
  }
};

/// Bounds of any type: for integers the nearest ones of theirs.
class Bounds {
 public:
  Bounds(const std::optional<Number>& low, const std::optional<Number>& high)
      : integers_{low ? low->to<int64_t>() : std::numeric_limits<int64_t>::min(),
                  high ? high->to<int64_t>() : std::numeric_limits<int64_t>::max()},
        numbers_{low ? low->to<double>() : -std::numeric_limits<double>::infinity(),
                 high ? high->to<double>() : std::numeric_limits<double>::infinity()} {}

  template <class T>
  PLEAT_HOST_DEVICE T low() const {
    return bound<T>(0);
  }
  template <class T>
  PLEAT_HOST_DEVICE T high() const {
    return bound<T>(1);
  }

 private:
  template <class T>
  PLEAT_HOST_DEVICE T bound(int side) const {
    if constexpr (std::is_integral_v<T>) {
      constexpr int64_t least = std::numeric_limits<T>::min();
      constexpr int64_t most = std::numeric_limits<T>::max();
      const int64_t bound = integers_[side];
      return static_cast<T>(bound < least ? least : bound > most ? most : bound);
    } else {
      return static_cast<T>(numbers_[side]);
    }
  }

  int64_t integers_[2];
  double numbers_[2];
};

struct Clamp {
  Bounds bounds;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const T low = bounds.low<T>();
    const T high = bounds.high<T>();
    // A bound of NaN makes all NaN, as a NaN among the elements stays one.
    const T raised = ((a < low) | (low != low)) ? low : a;
    return ((raised > high) | (high != high)) ? high : raised;
  }
};

struct ClampBackward {
  Bounds bounds;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T low = bounds.low<T>();
    const T high = bounds.high<T>();
    return ((a >= low) & (a <= high)) ? dy : T(0);
  }
};

/// The bounds count as outside.
struct HardtanhBackward {
  Bounds bounds;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T low = bounds.low<T>();
    const T high = bounds.high<T>();
    return ((a > low) & (a < high)) ? dy : T(0);
  }
};

}  // namespace pleat::ops
