// Private header: not installed.
#pragma once

#include "pleat/ops/elementwise/vector_math.h"

/// Trigonometric and hyperbolic functions, as those of vector_math.h.

namespace pleat::ops::vmath {

namespace approximations {

/// |x| = n pi / 2 + r with a whole number n and |r| <= pi / 4.
struct Turned {
  uint32_t n;
  float r;
};
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Turned reduce_by_half_pi(float x) {
  const float a = std::abs(x);
  constexpr float shift = 12582912;  // as in reduce_by_ln2
  const float shifted = a * 6.366197724e-01f + shift;
  const float n = shifted - shift;
  // pi / 2 in four parts, of which three have so few bits (11) that n times it is exact up to n = 2^13. The
  // last one matters next to multiples of pi / 2, where the others cancel.
  const float r =
      ((a - n * 1.5703125f) - n * 4.837512969970703e-4f) - n * 7.549533620476723e-8f - n * 2.563344068e-12f;
  return {std::bit_cast<uint32_t>(shifted), r};
}

/// sin(n pi / 2 + r): relative error 4.0e-9 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float sin_reduced(Turned x) {
  const float z = x.r * x.r;
  const float sine = x.r + x.r * z * polynomial(z, -1.666665491e-01f, 8.332175847e-03f, -1.951697755e-04f);
  const float cosine =
      1 - 0.5f * z + z * z * polynomial(z, 4.166665462e-02f, -1.388765192e-03f, 2.446350163e-05f);
  const float size = (x.n & 1) != 0 ? cosine : sine;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) ^ (x.n & 2) << 30);
}

/// y with its sign changed where x is negative.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float times_sign(float y, float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) ^ (std::bit_cast<uint32_t>(x) & 0x80000000u));
}

/// tan(n pi / 2 + r): relative error 1.4e-9 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float tan_reduced(Turned x) {
  const float z = x.r * x.r;
  const float t =
      x.r + x.r * z *
                polynomial(z, 3.333335159e-01f, 1.333260480e-01f, 5.406613648e-02f, 2.125182584e-02f,
                           1.091069280e-02f, -1.260639371e-06f, 4.419304913e-03f);
  const bool odd = (x.n & 1) != 0;
  return (odd ? -1.0f : t) / (odd ? t : 1.0f);
}

/// asin(a) for a in [0, 1/2], half of acos(a) for a in [1/2, 1]: relative error 5.0e-9 before rounding.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float small_angle(float a) {
  const float square = a > 0.5f ? 0.5f - 0.5f * a : a * a;
  const float x = a > 0.5f ? std::sqrt(square) : a;
  return x + x * square *
                 polynomial(square, 1.666675392e-01f, 7.495241966e-02f, 4.547708221e-02f, 2.414765591e-02f,
                            4.221850560e-02f);
}

/// pi / 2 - x. A float holds pi with too few bits.
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr float half_pi_minus(float x) {
  return (1.570796371f - x) + -4.371139001e-8f;
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE constexpr float pi_minus(float x) {
  return (3.141592741f - x) + -8.742278001e-8f;
}

/// The angle in [0, pi / 2] of the point (x, y), neither negative: relative error 2.3e-9 before rounding.
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

}  // namespace approximations

/// Whether sin, cos and tan of the float x hold on the CPU. Formulas with them have an `is_near`
/// (ops/elementwise/map_arrays.h).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool sin_is_near(float x) { return !(std::abs(x) > 10000); }

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double sin(double x) { return std::sin(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double cos(double x) { return std::cos(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double tan(double x) { return std::tan(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double asin(double x) { return std::asin(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double acos(double x) { return std::acos(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double atan(double x) { return std::atan(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double atan2(double y, double x) { return std::atan2(y, x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double sinh(double x) { return std::sinh(x); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double cosh(double x) { return std::cosh(x); }

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float sin(float x) {
#if PLEAT_DEVICE_CODE
  return std::sin(x);
#else
  return approximations::times_sign(approximations::sin_reduced(approximations::reduce_by_half_pi(x)), x);
#endif
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float cos(float x) {
#if PLEAT_DEVICE_CODE
  return std::cos(x);
#else
  const approximations::Turned turned = approximations::reduce_by_half_pi(x);
  return approximations::sin_reduced({turned.n + 1, turned.r});
#endif
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float tan(float x) {
#if PLEAT_DEVICE_CODE
  return std::tan(x);
#else
  return approximations::times_sign(approximations::tan_reduced(approximations::reduce_by_half_pi(x)), x);
#endif
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float asin(float x) {
  const float a = std::abs(x);
  const float p = approximations::small_angle(a);
  return std::copysign(a > 0.5f ? approximations::half_pi_minus(2 * p) : p, x);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float acos(float x) {
  const float a = std::abs(x);
  const float p = approximations::small_angle(a);
  const float outer = x < 0 ? approximations::pi_minus(2 * p) : 2 * p;
  return a > 0.5f ? outer : approximations::half_pi_minus(std::copysign(p, x));
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float atan(float x) {
  return std::copysign(approximations::first_quadrant_angle(std::abs(x), 1), x);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float atan2(float y, float x) {
  const float angle = approximations::first_quadrant_angle(std::abs(y), std::abs(x));
  const bool left = static_cast<int32_t>(std::bit_cast<uint32_t>(x)) < 0;  // -0, too
  return std::copysign(left ? approximations::pi_minus(angle) : angle, y);
}

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float sinh(float x) {
  const float a = std::abs(x);
  const float z = x * x;
  // Relative error 5.6e-11 below 1, before rounding.
  const float small = a + a * z *
                              approximations::polynomial(z, 1.666666649e-01f, 8.333350598e-03f,
                                                         1.983606628e-04f, 2.817439500e-06f);
  const float half = approximations::scaled_exp(a, -1);
  return std::copysign(a < 1 ? small : half - 0.25f / half, x);
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float cosh(float x) {
  const float half = approximations::scaled_exp(std::abs(x), -1);
  return half + 0.25f / half;
}

}  // namespace pleat::ops::vmath
