// Private header: not installed.
#pragma once

#include "pleat/ops/elementwise/vector_math.h"

/// Trigonometric and hyperbolic functions, as those of vector_math.h.

namespace pleat::ops::vmath {

namespace approximations {

/// |x| = n pi / 2 + r + lost with a whole number n, of which only the lowest bits are kept, and |r| <= pi
/// / 4. `lost` is what the rounding of r lost; floats do without.
template <class T>
struct Turned {
  Bits<T> n;
  T r, lost;
};
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Turned<float> reduce_by_half_pi(float x) {
  const float a = std::abs(x);
  constexpr float shift = Constants<float>::shift;
  const float shifted = a * 6.366197724e-01f + shift;
  const float n = shifted - shift;
  // pi / 2 in four parts, of which three have so few bits (11) that n times it is exact up to n = 2^13. The
  // last one matters next to multiples of pi / 2, where the others cancel.
  const float r =
      ((a - n * 1.5703125f) - n * 4.837512969970703e-4f) - n * 7.549533620476723e-8f - n * 2.563344068e-12f;
  return {std::bit_cast<uint32_t>(shifted), r, 0};
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Turned<double> reduce_by_half_pi(double x) {
  const double a = std::abs(x);
  constexpr double shift = Constants<double>::shift;
  const double shifted = a * 6.36619772367581382433e-01 + shift;
  const double n = shifted - shift;
  // Likewise, with parts of 33 bits (fdlibm's) up to n = 2^20.
  const double first = a - n * 1.57079632673412561417e+00;
  const double second = first - n * 6.07710050630396597660e-11;
  const double lost_second = (first - second) - n * 6.07710050630396597660e-11;
  const double third = second - n * 2.02226624871116645580e-21;
  const double lost_third = (second - third) - n * 2.02226624871116645580e-21;
  const double rest = (lost_second + lost_third) - n * 8.47842766036889956997e-32;
  const double r = third + rest;
  return {std::bit_cast<uint64_t>(shifted), r, (third - r) + rest};
}

/// The same of |x| above 1 of any size; r is NaN where x is infinite or NaN.
Turned<double> reduce_any(double x);

/// sin(r + lost) and cos(r + lost): relative error 4.0e-9 (float) and 2^-58 (double, with fdlibm's
/// coefficients) before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float sin_near_0(const Turned<float>& x) {
  const float z = x.r * x.r;
  return x.r + x.r * z * polynomial(z, -1.666665491e-01f, 8.332175847e-03f, -1.951697755e-04f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float cos_near_0(const Turned<float>& x) {
  const float z = x.r * x.r;
  return 1 - 0.5f * z + z * z * polynomial(z, 4.166665462e-02f, -1.388765192e-03f, 2.446350163e-05f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double sin_near_0(const Turned<double>& x) {
  const double z = x.r * x.r;
  const double cube = z * x.r;
  const double rest =
      polynomial(z, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                 -2.50507602534068634195e-08, 1.58969099521155010221e-10);
  return x.r - ((z * (0.5 * x.lost - cube * rest) - x.lost) - cube * -1.66666666666666324348e-01);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double cos_near_0(const Turned<double>& x) {
  const double z = x.r * x.r;
  const double rest =
      z * polynomial(z, 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                     -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11);
  const double half = 0.5 * z;
  const double upper = 1 - half;
  return upper + (((1 - upper) - half) + (z * rest - x.r * x.lost));
}

/// y with its sign changed where x is negative.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T times_sign(T y, T x) {
  constexpr Bits<T> sign = Bits<T>{1} << (sizeof(T) * 8 - 1);
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(y) ^ (std::bit_cast<Bits<T>>(x) & sign));
}

/// sin((n + quarters) pi / 2 + r).
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sin_reduced(const Turned<T>& x, Bits<T> quarters = 0) {
  const Bits<T> n = x.n + quarters;
  const T size = (n & 1) != 0 ? cos_near_0(x) : sin_near_0(x);
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(size) ^ (n & 2) << (sizeof(T) * 8 - 2));
}

/// tan(n pi / 2 + r): relative error 1.4e-9 (float) and 2^-57 (double) before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float tan_reduced(const Turned<float>& x) {
  const float z = x.r * x.r;
  const float t =
      x.r + x.r * z *
                polynomial(z, 3.333335159e-01f, 1.333260480e-01f, 5.406613648e-02f, 2.125182584e-02f,
                           1.091069280e-02f, -1.260639371e-06f, 4.419304913e-03f);
  const bool odd = (x.n & 1) != 0;
  return (odd ? -1.0f : t) / (odd ? t : 1.0f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double tan_reduced(const Turned<double>& x) {
  const bool odd = (x.n & 1) != 0;
  const double sine = sin_near_0(x);
  const double cosine = cos_near_0(x);
  return (odd ? -cosine : sine) / (odd ? sine : cosine);
}

/// (asin(x) - x) / x^3 of z = x^2 <= 1/4: relative error of asin 5.0e-9 (float) and 1.7e-17 (double) before
/// rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float arc_sine_rest(float z) {
  return polynomial(z, 1.666675392e-01f, 7.495241966e-02f, 4.547708221e-02f, 2.414765591e-02f,
                    4.221850560e-02f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double arc_sine_rest(double z) {
  return polynomial(z, 1.66666666666653834e-01, 7.50000000034304060e-02, 4.46428568234811252e-02,
                    3.03819593313812315e-02, 2.23717535201311303e-02, 1.73597711459566942e-02,
                    1.38845981961633856e-02, 1.21732804298855905e-02, 6.51085119347651065e-03,
                    1.95739050454335692e-02, -1.62940613269122146e-02, 3.19589503135931166e-02);
}

/// upper + lower = asin(a) for a in [0, 1/2], half of acos(a) for a in [1/2, 1].
template <class T>
struct SmallAngle {
  T upper, lower;
};
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline SmallAngle<T> small_angle(T a) {
  const bool outer = a > T(0.5);
  const T square = outer ? T(0.5) - T(0.5) * a : a * a;
  const T x = outer ? std::sqrt(square) : a;
  const T rest = x * square * arc_sine_rest(square);
  if constexpr (std::same_as<T, float>) return {x, rest};
  // Of the root its upper half, whose square is exact, and the rest of it.
  const T upper = outer ? std::bit_cast<T>(std::bit_cast<Bits<T>>(x) & Constants<T>::upper) : a;
  const T root_rest = (outer & (x > 0)) ? (square - upper * upper) / (x + upper) : T(0);
  return {upper, rest + root_rest};
}

/// pi / 2 - upper - lower. One number holds pi with too few bits.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr T half_pi_minus(T upper, T lower = 0) {
  if constexpr (std::same_as<T, float>)
    return (1.570796371f - upper) + (-4.371139001e-8f - lower);
  else
    return (1.57079632679489655800e+00 - upper) + (6.12323399573676603587e-17 - lower);
}
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr T pi_minus(T upper, T lower = 0) {
  return 2 * half_pi_minus(T(0.5) * upper, T(0.5) * lower);
}

/// (atan(t) - t) / t^3 of z = t^2 for |t| <= 7/16: fdlibm's, 2^-57.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double arc_tangent_rest(double z) {
  return polynomial(z, -3.33333333333329318027e-01, 1.99999999998764832476e-01, -1.42857142725034663711e-01,
                    1.11111104054623557880e-01, -9.09088713343650656196e-02, 7.69187620504482999495e-02,
                    -6.66107313738753120669e-02, 5.83357013379057348645e-02, -4.97687799461593236017e-02,
                    3.65315727442169155270e-02, -1.62858201153657823623e-02);
}

/// The angle in [0, pi / 2] of the point (x, y), neither negative: relative error 2.3e-9 (float) before
/// rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float first_quadrant_angle(float y, float x) {
  const bool steep = y > x;
  const float small = steep ? x : y;
  const float large = steep ? y : x;
  const float t = small == large ? (small > 0 ? 1.0f : 0.0f) : small / large;  // also of infinities
  const float z = t * t;
  const float angle = t + t * z *
                              polynomial(z, -3.333330187e-01f, 1.999863866e-01f, -1.426524571e-01f,
                                         1.095757744e-01f, -8.419461792e-02f, 5.823458406e-02f,
                                         -3.145572627e-02f, 1.106445033e-02f, -1.827214345e-03f);
  return steep ? half_pi_minus(angle) : angle;
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double first_quadrant_angle(double y, double x) {
  const bool steep = y > x;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double least = steep ? x : y;
  const double most = steep ? y : x;
  // Scaled where the sum below would have no room or no bits. Of infinities and of 0 the quotients are 0 or
  // 1, and NaN stays.
  const double scale = most > 0x1p1000 ? 0x1p-4 : most < 0x1p-900 ? 0x1p100 : 1.0;
  const double at_infinity = least == infinity ? 1.0 : 0 * least;
  const double small = most == infinity ? at_infinity : scale * least;
  const double large = ((most == infinity) | (most == 0)) ? 1.0 : scale * most;
  // The angle from the nearest of 0, atan(1/2), pi / 4: its tangent is (small - c large) / (large + c small).
  const bool high = small > 0.6875 * large;
  const bool middle = small > 0.4375 * large;
  const double c = high ? 1.0 : middle ? 0.5 : 0.0;
  const double from = high ? 7.85398163397448278999e-01 : middle ? 4.63647609000806093515e-01 : 0.0;
  const double from_rest = high ? 3.06161699786838301793e-17 : middle ? 2.26987774529616870924e-17 : 0.0;
  const double t = (small - c * large) / (large + c * small);
  const double z = t * t;
  const double rest = t * z * arc_tangent_rest(z) + from_rest;
  // from + (t + rest), or pi / 2 less it.
  const double upper = from + t;
  const double lower = ((from - upper) + t) + rest;
  return steep ? half_pi_minus(upper, lower) : upper + lower;
}

/// sinh(a) for a in [0, 1]: relative error 5.6e-11 (float) and 7e-18 (double, Taylor's series) before
/// rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float sinh_below_1(float a) {
  const float z = a * a;
  return a + a * z * polynomial(z, 1.666666649e-01f, 8.333350598e-03f, 1.983606628e-04f, 2.817439500e-06f);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double sinh_below_1(double a) {
  const double z = a * a;
  return a + a * z *
                 polynomial(z, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800,
                            1.0 / 1307674368000, 1.0 / 355687428096000);
}

}  // namespace approximations

/// Whether sin, cos and tan of x are made of few instructions on the CPU; of Wide they hold anywhere.
/// Formulas with them have an `is_near` (ops/elementwise/map_arrays.h).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool sin_is_near(float x) { return !(std::abs(x) > 10000); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool sin_is_near(double x) { return !(std::abs(x) > 1e6); }

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sin(T x) {
#if PLEAT_DEVICE_CODE
  return std::sin(x);
#else
  if constexpr (std::same_as<T, Wide>) {
    const auto a = static_cast<double>(x);
    return approximations::times_sign(approximations::sin_reduced(approximations::reduce_any(a)), a);
  } else {
    return approximations::times_sign(approximations::sin_reduced(approximations::reduce_by_half_pi(x)), x);
  }
#endif
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T cos(T x) {
#if PLEAT_DEVICE_CODE
  return std::cos(x);
#else
  if constexpr (std::same_as<T, Wide>) {
    const auto a = static_cast<double>(x);
    return approximations::sin_reduced(approximations::reduce_any(a), approximations::Bits<double>{1});
  } else {
    return approximations::sin_reduced(approximations::reduce_by_half_pi(x), approximations::Bits<T>{1});
  }
#endif
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T tan(T x) {
#if PLEAT_DEVICE_CODE
  return std::tan(x);
#else
  if constexpr (std::same_as<T, Wide>) {
    const auto a = static_cast<double>(x);
    return approximations::times_sign(approximations::tan_reduced(approximations::reduce_any(a)), a);
  } else {
    return approximations::times_sign(approximations::tan_reduced(approximations::reduce_by_half_pi(x)), x);
  }
#endif
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T asin(T x) {
  const T a = std::abs(x);
  const auto [upper, lower] = approximations::small_angle(a);
  return std::copysign(a > T(0.5) ? approximations::half_pi_minus(2 * upper, 2 * lower) : upper + lower, x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T acos(T x) {
  const T a = std::abs(x);
  const auto [upper, lower] = approximations::small_angle(a);
  const T outer = x < 0 ? approximations::pi_minus(2 * upper, 2 * lower) : 2 * (upper + lower);
  return a > T(0.5) ? outer : approximations::half_pi_minus(std::copysign(upper, x), std::copysign(lower, x));
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T atan(T x) {
  return std::copysign(approximations::first_quadrant_angle(std::abs(x), T(1)), x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T atan2(T y, T x) {
  const T angle = approximations::first_quadrant_angle(std::abs(y), std::abs(x));
  const bool left = std::bit_cast<approximations::Bits<T>>(x) >> (sizeof(T) * 8 - 1) != 0;  // -0, too
  return std::copysign(left ? approximations::pi_minus(angle) : angle, y);
}

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T sinh(T x) {
  const T a = std::abs(x);
  const T half = approximations::scaled_exp(a, T(-1));
  return std::copysign(a < 1 ? approximations::sinh_below_1(a) : half - T(0.25) / half, x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T cosh(T x) {
  const T half = approximations::scaled_exp(std::abs(x), T(-1));
  return half + T(0.25) / half;
}

/// The inverse hyperbolic functions by log1p, of arguments that vanish with x: asinh and atanh up to 3
/// epsilon, acosh up to 2.5.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T asinh(T x) {
  // log(a + sqrt(a^2 + 1)), which is log(2 a) where a^2 has no room.
  const T a = std::abs(x);
  const bool large = a > approximations::Constants<T>::large_area;
  const T square = a * a;
  const T y = log1p(large ? a : a + square / (1 + std::sqrt(1 + square)));
  return std::copysign(large ? y + T(0.69314718055994530942) : y, x);
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T acosh(T x) {
  // log(x + sqrt(x^2 - 1)), likewise.
  const T t = x - 1;
  const bool large = x > approximations::Constants<T>::large_area;
  const T y = log1p(large ? t : t + std::sqrt(t * (t + 2)));
  const T value = large ? y + T(0.69314718055994530942) : y;
  return x < 1 ? std::numeric_limits<T>::quiet_NaN() : value;
}
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T atanh(T x) {
  // log((1 + a) / (1 - a)) / 2.
  const T a = std::abs(x);
  return std::copysign(T(0.5) * log1p(2 * a / (1 - a)), x);
}

}  // namespace pleat::ops::vmath
