// Private header: not installed.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/core/base/host_device.h"

/// Elementary functions without branches and always inlined, so that a loop over them becomes vector
/// instructions (a call into the C library does not). Those for float are good to 2 units in the last place
/// or better and exact at infinities; NaN stays NaN. Those for double are the C library's, but for exp. The
/// polynomials are minimax fits: scripts/fit_vector_math.py makes their coefficients.

namespace pleat::ops::vmath {

namespace approximations {

/// c[0] + x c[1] + x^2 c[2] + ... by Horner's scheme.
template <class T, class... C>
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr T polynomial(T x, T first, C... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first;
  else
    return first + x * polynomial(x, rest...);
}

/// 2^n for n in [-126, 127].
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float power_of_two(int32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

/// x = n ln 2 + r with a whole number n and |r| <= ln 2 / 2.
struct Reduced {
  int32_t n;
  float r;
};
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Reduced reduce_by_ln2(float x) {
  // Adding 1.5 * 2^23 leaves the rounded number in the low bits of the mantissa.
  constexpr float shift = 12582912;
  const float shifted = x * 1.442695041f + shift;
  const float n = shifted - shift;
  // ln 2 in two parts, of which the first has few enough bits that n times it is exact.
  const float r = (x - n * 0.693359375f) - n * -2.121944401e-4f;
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(shift), r};
}

/// e^r - 1 for |r| <= ln 2 / 2: relative error 2.4e-10 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float expm1_reduced(float r) {
  return r + r * r *
                 polynomial(r, 5.000000047e-01f, 1.666666682e-01f, 4.166635353e-02f, 8.333272827e-03f,
                            1.394110300e-03f, 1.991430433e-04f);
}

/// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct Split {
  float e, f;
};
/// Of x 2^lift with a positive, normal, finite x; anything else gives some numbers.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Split split_normal(float x, int32_t lift = 0) {
  constexpr int32_t root = 0x3f3504f3;  // sqrt(1/2)
  // Of numbers below 0 it would leave int32, which is defined without a sign only.
  const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(x) - uint32_t{root});
  return {static_cast<float>((bits >> 23) + lift), std::bit_cast<float>((bits & 0x7fffff) + root) - 1};
}
/// Of any positive, finite x.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Split split(float x) {
  const bool tiny = x < std::numeric_limits<float>::min();
  return split_normal(tiny ? x * 0x1p23f : x, tiny ? -23 : 0);
}

/// log(1 + f) = log((1 + s) / (1 - s)) = 2 s + s z R(z) with s = f / (2 + f), z = s^2; and 2 s = f - s f. So
/// it is f - (half_square - rest).
struct LogTerms {
  float half_square, rest;
};
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline LogTerms log_terms(float f) {
  const float s = f / (2 + f);
  const float z = s * s;
  const float more = z * polynomial(z, 6.666677672e-01f, 3.997749558e-01f, 2.987307324e-01f);
  const float half_square = 0.5f * f * f;
  return {half_square, s * (half_square + more)};
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log_of(Split x) {
  const auto [half_square, rest] = log_terms(x.f);
  // ln 2 in two parts as above; the large terms come last.
  return x.e * 0.693359375f - ((half_square - (rest + x.e * -2.121944401e-4f)) - x.f);
}

/// e high_2 + e low_2 + factor log(1 + f), where factor = high + low, and products with the first parts are
/// exact.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float scaled_log_of(Split x, float high_2, float low_2,
                                                                    float high, float low) {
  const auto [half_square, rest] = log_terms(x.f);
  const float upper =
      std::bit_cast<float>(std::bit_cast<uint32_t>(x.f - half_square) & 0xfffff000u);  // 12 bits
  const float lower = (x.f - upper) - half_square + rest;
  return x.e * low_2 + (lower + upper) * low + lower * high + upper * high + x.e * high_2;
}

/// A logarithm y that was computed as if x were positive and finite.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log_everywhere(float x, float y) {
  const float finite = x == 0 ? -std::numeric_limits<float>::infinity() : y;
  const float upper = x == std::numeric_limits<float>::infinity() ? x : finite;
  return ((x < 0) | (x != x)) ? std::numeric_limits<float>::quiet_NaN() : upper;
}

/// e^x 2^lift.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float scaled_exp(float x, int32_t lift) {
  // Beyond these the result is 0 or infinite; comparisons with NaN fail and let it pass.
  const float low = x < -104 ? -104.0f : x;
  const Reduced reduced = reduce_by_ln2(low > 90 ? 90.0f : low);
  // In two factors, as 2^n alone may be too large or too small for a float.
  const int32_t n = reduced.n + lift;
  const int32_t half = n >> 1;
  return (1 + expm1_reduced(reduced.r)) * power_of_two(half) * power_of_two(n - half);
}

}  // namespace approximations

/// To 1 unit in the last place, unlike the rest for double in vector instructions: softmax and sigmoid are
/// made of it, too.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double exp(double x) {
  // As for float; the series ends where it no longer counts.
  const double low = x < -746 ? -746.0 : x;
  const double bounded = low > 710 ? 710.0 : low;
  constexpr double shift = 6755399441055744;  // 1.5 * 2^52
  const double shifted = bounded * 1.4426950408889634 + shift;
  const double n = shifted - shift;
  const double r = (bounded - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const double series = approximations::polynomial(
      r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
      1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200);
  const auto whole = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(shift);
  const int64_t half = whole >> 1;
  return (1 + (r + r * r * series)) * std::bit_cast<double>((half + 1023) << 52) *
         std::bit_cast<double>((whole - half + 1023) << 52);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double expm1(double x) { return std::expm1(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double log(double x) { return std::log(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double log2(double x) { return std::log2(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double log10(double x) { return std::log10(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double log1p(double x) { return std::log1p(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double tanh(double x) { return std::tanh(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double erf(double x) { return std::erf(x); }

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float exp(float x) {
  return approximations::scaled_exp(x, 0);
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float expm1(float x) {
  const float low = x < -20 ? -20.0f : x;
  const auto [n, r] = approximations::reduce_by_ln2(low > 89 ? 89.0f : low);
  // e^x - 1 = 2^n (e^r - 1) + (2^n - 1), at half the size as 2^128 is no float.
  const float scale = approximations::power_of_two(n - 1);
  return 2 * (scale * approximations::expm1_reduced(r) + (scale - 0.5f));
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log(float x) {
  return approximations::log_everywhere(x, approximations::log_of(approximations::split(x)));
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log2(float x) {
  const float y =
      approximations::scaled_log_of(approximations::split(x), 1, 0, 1.4428710938f, -1.7605285393e-4f);
  return approximations::log_everywhere(x, y);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log10(float x) {
  const float y = approximations::scaled_log_of(approximations::split(x), 3.0102920532e-01f,
                                                7.9034151668e-07f, 4.3432617188e-01f, -3.1689971365e-05f);
  return approximations::log_everywhere(x, y);
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log1p(float x) {
  // log(1 + x) of the rounded u = 1 + x, corrected by what rounding lost.
  const float u = 1 + x;
  const float lost = (u - 1) - x;
  const float y = log(u);
  return ((u == 0) | (u == std::numeric_limits<float>::infinity())) ? y : y - lost / u;
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float tanh(float x) {
  const float a = std::abs(x);
  const float t = expm1(a > 10 ? 20.0f : 2 * a);  // tanh(10) rounds to 1
  return std::copysign(t / (t + 2), x);
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float erf(float x) {
  const float a = std::abs(x);
  const float z = x * x;
  // Relative error 1.2e-9 below 1, 1.1e-9 above, before rounding; erf(4) rounds to 1.
  const float small = x * approximations::polynomial(z, 1.128379166e+00f, -3.761262582e-01f, 1.128358515e-01f,
                                                     -2.685381194e-02f, 5.188327686e-03f, -8.010193625e-04f,
                                                     7.853861343e-05f);
  const float b = a > 4 ? 4.0f : a;
  const float large = 1 - exp(-approximations::polynomial(
                              b, 3.415228955e-04f, 1.127089191e+00f, 6.381448320e-01f, 1.031067552e-01f,
                              -2.183806423e-02f, 2.947658338e-03f, -1.863791929e-04f));
  return a < 1 ? small : std::copysign(large, x);
}

/// 1 / (1 + e^-x), from the side on which the exponential is below 1.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sigmoid(T x) {
  const T e = exp(-std::abs(x));
  return (x < 0 ? e : T(1)) / (1 + e);
}

/// log(1 + e^x).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double softplus(double x) {
  const double tail = std::log1p(std::exp(-std::abs(x)));
  return x < 0 ? tail : x + tail;
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float softplus(float x) {
  // As log1p above, whose special cases cannot come up.
  const float e = exp(-std::abs(x));
  const float u = 1 + e;
  const float tail = approximations::log_of(approximations::split_normal(u)) - ((u - 1) - e) / u;
  return x < 0 ? tail : x + tail;
}

/// Functions under whose names formulas find those of tensors, too.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sqrt(T x) {
  return std::sqrt(x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T rsqrt(T x) {
  return 1 / std::sqrt(x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T abs(T x) {
  return std::abs(x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T square(T x) {
  return x * x;
}
/// -1, 0 or 1; NaN at NaN.
template <class T>
requires std::is_arithmetic_v<T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : x;
}
/// The smaller of x and a bound; a NaN stays.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T at_most(T x, double bound) {
  return x > static_cast<T>(bound) ? static_cast<T>(bound) : x;
}
/// A choice between values.
template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) [[gnu::always_inline]] PLEAT_HOST_DEVICE
    inline std::common_type_t<A, B> where(bool condition, A a, B b) {
  using T = std::common_type_t<A, B>;
  return condition ? static_cast<T>(a) : static_cast<T>(b);
}

}  // namespace pleat::ops::vmath
