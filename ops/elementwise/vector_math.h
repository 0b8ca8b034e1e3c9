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
/// or better (normal_cdf as it says) and exact at infinities; NaN stays NaN. So are those for double. The
/// polynomials are minimax fits, where nothing else is said: scripts/fit_vector_math.py makes their
/// coefficients.

namespace pleat::ops::vmath {

/// The type in which elements are computed for which the functions below do not hold, one by one: remainders
/// of large ones by the C library, sin of them by far_angle.cpp (ops/elementwise/map_arrays.h).
using Wide = long double;

namespace approximations {

/// c[0] + x c[1] + x^2 c[2] + ... by Horner's scheme.
template <class T, class... C>
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr T polynomial(T x, T first, C... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first;
  else
    return first + x * polynomial(x, rest...);
}

/// What the formulas need to know of a type.
template <class T>
struct Constants;
template <>
struct Constants<float> {
  using Bits = uint32_t;
  static constexpr Bits upper = 0xfffff000u;  // without the lower half of a number's bits
  static constexpr int mantissa = 23;
  static constexpr int bias = 127;
  static constexpr Bits root = 0x3f3504f3u;  // sqrt(1/2)
  // Added to a number it leaves the whole part, rounded, in the low bits of the mantissa: 1.5 * 2^23.
  static constexpr float shift = 12582912;
  // ln 2 in two parts, of which the first has so few bits that its products with exponents are exact. So
  // have those of the other constants.
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.121944401e-4f;
  static constexpr float log10_of_2_high = 3.0102920532e-01f, log10_of_2_low = 7.9034151668e-07f;
  static constexpr float log2_of_e_high = 1.4428710938f, log2_of_e_low = -1.7605285393e-4f;
  static constexpr float log10_of_e_high = 4.3432617188e-01f, log10_of_e_low = -3.1689971365e-05f;
  // Beyond these e^x / 2 is 0 or infinite (and e^x - 1 infinite one before the largest), tanh(x) rounds to 1,
  // e^x - 1 to -1.
  static constexpr float least_exp = -104, largest_exp = 90, largest_tanh = 10, least_expm1 = -20;
  // Above it sqrt(x^2 + 1) rounds to x; far from where x^2 has no room.
  static constexpr float large_area = 1e9f;
};
template <>
struct Constants<double> {
  using Bits = uint64_t;
  static constexpr Bits upper = 0xffffffff00000000u;
  static constexpr int mantissa = 52;
  static constexpr int bias = 1023;
  static constexpr Bits root = 0x3fe6a09e667f3bcdu;
  static constexpr double shift = 6755399441055744;
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double log10_of_2_high = 3.01029995663611771306e-01,
                          log10_of_2_low = 3.69423907715893078616e-13;
  static constexpr double log2_of_e_high = 1.44269504072144627571e+00,
                          log2_of_e_low = 1.67517131648865118353e-10;
  static constexpr double log10_of_e_high = 4.34294481878168880939e-01,
                          log10_of_e_low = 2.50829467116452752298e-11;
  static constexpr double least_exp = -746, largest_exp = 711, largest_tanh = 20, least_expm1 = -40;
  static constexpr double large_area = 1e17;
};
template <class T>
using Bits = typename Constants<T>::Bits;

/// 2^n for an n that is added to Constants<T>::shift, n between the least and the largest exponent.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T power_of_two(T shifted) {
  using C = Constants<T>;
  // Only the low bits of the sum are kept, in which the number stands.
  return std::bit_cast<T>((std::bit_cast<Bits<T>>(shifted) + Bits<T>{C::bias}) << C::mantissa);
}

/// x = n ln 2 + r with a whole number n and |r| <= ln 2 / 2.
template <class T>
struct Reduced {
  T n, r;
};
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Reduced<T> reduce_by_ln2(T x) {
  using C = Constants<T>;
  const T n = (x * T(1.4426950408889634) + C::shift) - C::shift;
  const T high = C::ln2_high, low = C::ln2_low;
  return {n, (x - n * high) - n * low};
}

/// e^r - 1 for |r| <= ln 2 / 2: relative error 2.4e-10 (float) and 2.1e-17 (double) before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float expm1_reduced(float r) {
  return r + r * r *
                 polynomial(r, 5.000000047e-01f, 1.666666682e-01f, 4.166635353e-02f, 8.333272827e-03f,
                            1.394110300e-03f, 1.991430433e-04f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double expm1_reduced(double r) {
  return r + r * r *
                 polynomial(r, 5.00000000000000555e-01, 1.66666666666666852e-01, 4.16666666665729477e-02,
                            8.33333333331441085e-03, 1.38888889326156586e-03, 1.98412699034483046e-04,
                            2.48015041450914759e-05, 2.75572275596117932e-06, 2.76264517624505203e-07,
                            2.51146037689656290e-08);
}

/// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
template <class T>
struct Split {
  T e, f;
};
/// Of x 2^lift with a positive, normal, finite x; anything else gives some numbers.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Split<T> split_normal(T x, T lift = 0) {
  using C = Constants<T>;
  constexpr Bits<T> one = Bits<T>{1} << C::mantissa;
  // The exponent with twice its bias, so that it is not negative, becomes the low bits of 2^mantissa: what
  // integers become by conversions is slow for those of 64 bits.
  const Bits<T> bits = std::bit_cast<Bits<T>>(x) - C::root + 2 * C::bias * one;
  constexpr T magic = static_cast<T>(one);
  const T e = std::bit_cast<T>((bits >> C::mantissa) | std::bit_cast<Bits<T>>(magic));
  return {(e - (magic + 2 * C::bias)) + lift, std::bit_cast<T>((bits & (one - 1)) + C::root) - 1};
}
/// Of any positive, finite x.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Split<T> split(T x) {
  constexpr T lift = Constants<T>::mantissa;
  const bool tiny = x < std::numeric_limits<T>::min();
  return split_normal(tiny ? x * static_cast<T>(Bits<T>{1} << Constants<T>::mantissa) : x,
                      tiny ? -lift : T(0));
}

/// log((1 + s) / (1 - s)) = 2 s + s z R(z) with z = s^2: R(z). Those of double are fdlibm's (Sun, 1993).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float logarithm_rest(float z) {
  return polynomial(z, 6.666677672e-01f, 3.997749558e-01f, 2.987307324e-01f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double logarithm_rest(double z) {
  return polynomial(z, 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                    1.479819860511658591e-01);
}

/// log(1 + f) = log((1 + s) / (1 - s)) with s = f / (2 + f); and 2 s = f - s f. So it is
/// f - (half_square - rest).
template <class T>
struct LogTerms {
  T half_square, rest;
};
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline LogTerms<T> log_terms(T f) {
  const T s = f / (2 + f);
  const T z = s * s;
  const T half_square = T(0.5) * f * f;
  return {half_square, s * (half_square + z * logarithm_rest(z))};
}

template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log_of(Split<T> x) {
  const auto [half_square, rest] = log_terms(x.f);
  const T high = Constants<T>::ln2_high, low = Constants<T>::ln2_low;
  // The large terms come last.
  return x.e * high - ((half_square - (rest + x.e * low)) - x.f);
}

/// e (high_2 + low_2) + factor log(1 + f), where factor = high + low, and products with the first parts are
/// exact.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T scaled_log_of(Split<T> x, T high_2, T low_2, T high,
                                                                T low) {
  const auto [half_square, rest] = log_terms(x.f);
  const T upper = std::bit_cast<T>(std::bit_cast<Bits<T>>(x.f - half_square) & Constants<T>::upper);
  const T lower = (x.f - upper) - half_square + rest;
  // The sum of the two exact products, and what its rounding lost.
  const T whole = x.e * high_2;
  const T sum = whole + upper * high;
  const T lost = (whole - sum) + upper * high;
  return x.e * low_2 + (lower + upper) * low + lower * high + lost + sum;
}

/// A logarithm y that was computed as if x were positive and finite.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log_everywhere(T x, T y) {
  const T finite = x == 0 ? -std::numeric_limits<T>::infinity() : y;
  const T upper = x == std::numeric_limits<T>::infinity() ? x : finite;
  // Two choices: a truth of both keeps GCC from making vector instructions where x is a choice itself.
  const T real = x < 0 ? std::numeric_limits<T>::quiet_NaN() : upper;
  return x != x ? x : real;
}

/// e^x 2^lift.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T scaled_exp(T x, T lift) {
  using C = Constants<T>;
  // Comparisons with NaN fail and let it pass.
  const T bounded = x < C::least_exp ? C::least_exp : x;
  const Reduced<T> reduced = reduce_by_ln2(bounded > C::largest_exp ? C::largest_exp : bounded);
  // In two factors, as 2^n alone may be too large or too small.
  const T n = reduced.n + lift;
  const T half = T(0.5) * n + C::shift;
  return (1 + expm1_reduced(reduced.r)) * power_of_two(half) *
         power_of_two((n - (half - C::shift)) + C::shift);
}

/// erf(x) for |x| < 1: relative error 1.9e-17 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double erf_below_1(double x) {
  return x * polynomial(x * x, 1.12837916709551256e+00, -3.76126389031835207e-01, 1.12837916709442002e-01,
                        -2.68661706431133976e-02, 5.22397760613082032e-03, -8.54832592976610120e-04,
                        1.20552935869365152e-04, -1.49247124395338268e-05, 1.64471326997847940e-06,
                        -1.62063187529663946e-07, 1.37109887041871031e-08, -7.77946297175909587e-10);
}
/// -log(1 - erf(a)) for a from 1 to 6, where erf rounds to 1: relative error of erf 5.3e-18 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double erf_rest_above_1(double a) {
  return polynomial(
      a > 6 ? 6.0 : a, 1.79624774574105958e-07, 1.12837732921583411e+00, 6.36628489156828237e-01,
      1.02747251383770000e-01, -1.90781533439880156e-02, -2.80492451462652876e-04, 1.76900528264991534e-03,
      -6.41176975573055420e-04, 4.48255729316789114e-05, 7.03648194854749411e-05, -4.50365245676411088e-05,
      1.65136249545737745e-05, -4.32695351296078287e-06, 8.50555571901841632e-07, -1.25702065114203302e-07,
      1.36263842962710177e-08, -1.02567675274305159e-09, 4.79592578184972575e-11, -1.04959708692295451e-12);
}

}  // namespace approximations

/// Of float on a GPU it is CUDA's, equally exact, which has an instruction for powers of two.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T exp(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return ::expf(x);
#endif
  return approximations::scaled_exp(x, T(0));
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T exp2(T x) {
  using C = approximations::Constants<T>;
  constexpr T least = C::least_exp * T(1.45), largest = C::largest_exp * T(1.45);
  const T low = x < least ? least : x;
  const T bounded = low > largest ? largest : low;
  const T n = (bounded + C::shift) - C::shift;
  // 2^n in two parts, as it may be no number.
  const T half = n * T(0.5) + C::shift;
  const T fraction = 1 + approximations::expm1_reduced((bounded - n) * T(0.69314718055994530942));
  return fraction * approximations::power_of_two(half) *
         approximations::power_of_two((n - (half - C::shift)) + C::shift);
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T expm1(T x) {
  using C = approximations::Constants<T>;
  const T bounded = x < C::least_expm1 ? C::least_expm1 : x;
  const auto [n, r] =
      approximations::reduce_by_ln2(bounded > C::largest_exp - 1 ? C::largest_exp - 1 : bounded);
  // e^x - 1 = 2^n (e^r - 1) + (2^n - 1), at half the size as the largest 2^n is no number.
  const T scale = approximations::power_of_two((n - 1) + C::shift);
  return std::copysign(2 * (scale * approximations::expm1_reduced(r) + (scale - T(0.5))), x);
}

/// Of float on a GPU it is CUDA's, as log1p is: equally exact, and without a division.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return ::logf(x);
#endif
  return approximations::log_everywhere(x, approximations::log_of(approximations::split(x)));
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log2(T x) {
  using C = approximations::Constants<T>;
  const T y = approximations::scaled_log_of(approximations::split(x), T(1), T(0), T(C::log2_of_e_high),
                                            T(C::log2_of_e_low));
  return approximations::log_everywhere(x, y);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log10(T x) {
  using C = approximations::Constants<T>;
  const T y =
      approximations::scaled_log_of(approximations::split(x), T(C::log10_of_2_high), T(C::log10_of_2_low),
                                    T(C::log10_of_e_high), T(C::log10_of_e_low));
  return approximations::log_everywhere(x, y);
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T log1p(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return ::log1pf(x);
#endif
  // log(1 + x) of the rounded u = 1 + x, corrected by what rounding lost.
  const T u = 1 + x;
  const T lost = (u - 1) - x;
  const T y = log(u);
  const T corrected = ((u == 0) | (u == std::numeric_limits<T>::infinity())) ? y : y - lost / u;
  return std::copysign(corrected, x);
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T tanh(T x) {
  using C = approximations::Constants<T>;
  const T a = std::abs(x);
  const T t = expm1(a > C::largest_tanh ? 2 * C::largest_tanh : 2 * a);
  return std::copysign(t / (t + 2), x);
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double erf(double x) {
  const double a = std::abs(x);
  const double large = 1 - exp(-approximations::erf_rest_above_1(a));
  return a < 1 ? approximations::erf_below_1(x) : std::copysign(large, x);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float erf(float x) {
  const float size = std::abs(x);
  const float a = size > 4 ? 4.0f : size;  // erf(4) rounds to 1
  // -log(1 - erf(a)): relative error of erf 4.3e-9 before rounding. For double it would take a longer one
  // than the two above.
  const float logarithm =
      a + a * approximations::polynomial(a, 0.128379172e+00f, 6.366193821e-01f, 1.027778292e-01f,
                                         -1.915306153e-02f, -1.603953686e-04f, 1.667021154e-03f,
                                         -6.328301511e-04f, 1.176384506e-04f, -9.255845246e-06f);
  // expm1, whose bounds are far.
  const auto [n, r] = approximations::reduce_by_ln2(-logarithm);
  const float scale = approximations::power_of_two(n + approximations::Constants<float>::shift);
  return std::copysign(scale * approximations::expm1_reduced(r) + (scale - 1), x);
}

/// e^x for x up to 0, on the CPU in two thirds of the time.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T exp_below_0(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return exp(x);
#endif
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T least = is_float ? T(-104) : T(-746);  // it rounds to 0
  // 2^n alone may be too small.
  constexpr T lift = is_float ? T(64) : T(512), lifted = is_float ? T(0x1p-64) : T(0x1p-512);
  const auto [n, r] = approximations::reduce_by_ln2(x < least ? least : x);
  const T power = approximations::power_of_two(n + lift + approximations::Constants<T>::shift);
  return (1 + approximations::expm1_reduced(r)) * power * lifted;
}

/// e^(-x^2 / 2). Of float on a GPU it is the instruction for powers of two, with another rounding of the
/// exponent.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T exp_of_square(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return ::exp2f(x * x * -0.72134752044f);
#endif
  return exp_below_0(x * x * T(-0.5));
}

/// The standard normal distribution and its density.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T normal_pdf(T x) {
  return exp_of_square(x) * T(0.39894228040143267794);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double normal_cdf(double x) {
  return 0.5 * std::erfc(x * -0.70710678118654752440);
}
namespace approximations {
/// What lies above a >= 0, over exp(-a^2 / 2): relative error 2.3e-8 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float normal_tail(float a) {
  const float u = 1 / (1 + 0.345f * a);
  return u * polynomial(u, 1.376201127e-01f, 1.380052387e-01f, 1.173620057e-01f, 1.112676545e-01f,
                        -3.623775870e-02f, 1.850543568e-01f, -2.691532752e-01f, 1.442334287e-01f,
                        -2.815176000e-02f);
}
}  // namespace approximations

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float normal_cdf(float x) {
  // With rounding up to 3.5 epsilon, and x^2 / 4 more below 0, where the rounding of x^2 counts; on a GPU
  // twice.
  const float tail = exp_of_square(x) * approximations::normal_tail(std::abs(x));
  return x < 0 ? tail : 1 - tail;
}

/// 1 - erf(x), which keeps its digits where x is large.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double erfc(double x) { return std::erfc(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float erfc(float x) {
  // The square of an upper half is exact, and the rest of x^2 small: up to 4 epsilon.
  const float a = std::abs(x) > 11 ? 11.0f : std::abs(x);  // erfc(11) rounds to 0
  const float upper =
      std::bit_cast<float>(std::bit_cast<uint32_t>(a) & approximations::Constants<float>::upper);
  const float rest = (a - upper) * (a + upper);
  const float tail =
      2 * approximations::normal_tail(a * 1.4142135624f) * exp_below_0(-rest) * exp_below_0(-upper * upper);
  return x < 0 ? 2 - tail : tail;
}

/// 1 / (1 + e^-x), from the side on which the exponential is below 1.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sigmoid(T x) {
  const T e = exp_below_0(-std::abs(x));
  return (x < 0 ? e : T(1)) / (1 + e);
}

namespace approximations {
/// log(1 + e) for e from 0 to 1: as log1p above, whose special cases cannot come up.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double log1p_below_1(double e) {
  const double u = 1 + e;
  return log_of(split_normal(u)) - ((u - 1) - e) / u;
}
/// By log_terms' series for all of that range: relative error 4.6e-9 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float log1p_below_1(float e) {
  const float s = e / (2 + e);
  const float z = s * s;
  return e -
         s * (e - z * polynomial(z, 6.666641326e-01f, 4.002169477e-01f, 2.799914295e-01f, 2.802472976e-01f));
}
}  // namespace approximations

/// log(1 + e^x).
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T softplus(T x) {
  const T tail = approximations::log1p_below_1(exp_below_0(-std::abs(x)));
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
