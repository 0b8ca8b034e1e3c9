#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// Floating-point arithmetic as PTX defines it, for every rounding: an operation is done in double, and what
/// it left out decides how the result is rounded to its type.

namespace cuda_double::ptx {

enum class Mode : uint8_t { nearest, zero, down, up };

struct Half {
  uint16_t bits;
};
struct Brain {  // bfloat16
  uint16_t bits;
};

inline float as_float(Half x) {
  const uint32_t sign = (x.bits & 0x8000u) << 16;
  const uint32_t size = (x.bits & 0x7fffu) << 13;
  const uint32_t exponent = size & 0x0f800000u;
  const uint32_t normal = size + (112u << 23) + (exponent == 0x0f800000u ? 112u << 23 : 0u);
  // Below the least normal number: an exponent one higher, less what that added.
  const float tiny = std::bit_cast<float>(size + (113u << 23)) - 0x1p-14f;
  return std::bit_cast<float>(sign | (exponent == 0 ? std::bit_cast<uint32_t>(tiny) : normal));
}
inline float as_float(Brain x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

/// To the nearest, ties to even.
inline Half nearest_half(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  const uint32_t sign = word >> 16 & 0x8000u;
  const uint32_t size = word & 0x7fffffffu;
  const uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const uint32_t kept = size > 0x7f800000u    ? 0x7fffu
                        : size >= 0x47800000u ? 0x7c00u
                        : size < 0x38800000u  ? tiny
                                              : normal;
  return {static_cast<uint16_t>(size > 0x7f800000u ? 0x7fffu : sign | kept)};
}
inline Brain nearest_brain(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  const uint32_t kept = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
  return {static_cast<uint16_t>((word & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : kept)};
}

inline double as_double(double x) { return x; }
inline double as_double(float x) { return static_cast<double>(x); }
inline double as_double(Half x) { return static_cast<double>(as_float(x)); }
inline double as_double(Brain x) { return static_cast<double>(as_float(x)); }

/// x with so many binary digits, and none below 2^(least - digits + 1).
inline double with_digits(double x, int digits, int least, double most, Mode mode) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int last = std::max(exponent, least + 1) - digits;
  const double scaled = std::ldexp(x, -last);
  const double whole = mode == Mode::nearest ? std::nearbyint(scaled)
                       : mode == Mode::zero  ? std::trunc(scaled)
                       : mode == Mode::down  ? std::floor(scaled)
                                             : std::ceil(scaled);
  const double result = std::copysign(std::ldexp(whole, last), x);
  if (std::fabs(result) <= most) return result;
  const bool away = mode == Mode::nearest || mode == (x < 0 ? Mode::down : Mode::up);
  return std::copysign(away ? std::numeric_limits<double>::infinity() : most, x);
}

template <class T>
T rounded(double x, Mode mode);
template <>
inline double rounded<double>(double x, Mode) {
  return x;
}
template <>
inline float rounded<float>(double x, Mode mode) {
  if (std::isnan(x)) return std::bit_cast<float>(0x7fffffffu);
  return static_cast<float>(with_digits(x, 24, -126, 0x1.fffffep127, mode));
}
template <>
inline Half rounded<Half>(double x, Mode mode) {
  return nearest_half(static_cast<float>(with_digits(x, 11, -14, 65504, mode)));
}
template <>
inline Brain rounded<Brain>(double x, Mode mode) {
  return nearest_brain(static_cast<float>(with_digits(x, 8, -126, 0x1.fep127, mode)));
}

template <class T>
inline constexpr double least_normal = 0x1p-126;
template <>
inline constexpr double least_normal<double> = 0x1p-1022;
template <>
inline constexpr double least_normal<Half> = 0x1p-14;

/// What .ftz makes of a number of type T.
template <class T>
double flushed(double x) {
  return std::fabs(x) < least_normal<T> ? std::copysign(0.0, x) : x;
}
/// What .sat makes of one.
inline double saturated(double x) { return std::isnan(x) || x <= 0 ? 0.0 : x >= 1 ? 1.0 : x; }

/// x rounded to odd: `rest` is what x lacks. Such a number can be rounded again to fewer digits, in any
/// direction, as if it had never been rounded.
inline double to_odd(double x, double rest) {
  if (rest == 0 || !std::isfinite(x) || std::isnan(rest) || (std::bit_cast<uint64_t>(x) & 1u) != 0) return x;
  return std::nextafter(x, rest > 0 ? INFINITY : -INFINITY);
}

/// The number next to x, where `rest` says that x was rounded against the direction.
inline double towards(double x, double rest, Mode mode) {
  if (rest == 0 || std::isnan(rest) || !std::isfinite(x)) return x;
  if (mode == Mode::zero) mode = x > 0 ? Mode::down : Mode::up;
  if (mode == Mode::down && rest < 0) return std::nextafter(x, -INFINITY);
  if (mode == Mode::up && rest > 0) return std::nextafter(x, INFINITY);
  return x;
}

// The operations: `of` to the nearest, and what `result` in double lacks.

struct Add {
  template <class T>
  static T of(T a, T b) {
    return a + b;
  }
  static double rest(double result, double a, double b) {
    const double back = result - a;
    return (a - (result - back)) + (b - back);
  }
};
struct Subtract {
  template <class T>
  static T of(T a, T b) {
    return a - b;
  }
  static double rest(double result, double a, double b) { return Add::rest(result, a, -b); }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    return a * b;
  }
  static double rest(double result, double a, double b) { return std::fma(a, b, -result); }
};
struct Divide {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
  static double rest(double result, double a, double b) { return std::fma(-result, b, a) / b; }
};
struct MultiplyAdd {
  template <class T>
  static T of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  static double rest(double result, double a, double b, double c) {
    const double product = a * b;
    const double sum = product + c;
    return ((sum - result) + Add::rest(sum, product, c)) + Multiply::rest(product, a, b);
  }
};
struct Reciprocal {
  template <class T>
  static T of(T a) {
    return T{1} / a;
  }
  static double rest(double result, double a) { return std::fma(-result, a, 1.0) / a; }
};
struct SquareRoot {
  template <class T>
  static T of(T a) {
    return std::sqrt(a);
  }
  static double rest(double result, double a) { return result == 0 ? 0 : std::fma(-result, result, a); }
};

/// An operation on numbers of type T in any rounding.
template <class Operation, class T, class... Numbers>
double exactly(Mode mode, Numbers... x) {
  const double result = Operation::of(x...);
  const double rest = Operation::rest(result, x...);
  if constexpr (sizeof(T) == sizeof(double))
    return mode == Mode::nearest ? result : towards(result, rest, mode);
  else
    return as_double(rounded<T>(to_odd(result, rest), mode));
}

}  // namespace cuda_double::ptx
