// Private header: not installed.
#pragma once

#include "pleat/ops/elementwise/vector_math.h"

/// Powers and remainders of floats, as the functions of vector_math.h. In double inside, which has the bits
/// that the logarithm of a power and the quotient of a remainder need.

namespace pleat::ops::vmath {

namespace approximations {

/// log2 of a finite a > 0: relative error 4.2e-12.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double exact_log2(float a) {
  const auto [e, fraction] = split(a);
  const double f = static_cast<double>(fraction);
  const double s = f / (2 + f);
  const double z = s * s;
  const double even = polynomial(z, 2.88539008179020273e+00, 9.61796673200211782e-01, 5.77083611582248635e-01,
                                 4.11671133462316541e-01, 3.40759386554605748e-01);
  return static_cast<double>(e) + s * even;
}

/// 2^x for x in [-1000, 1000]: relative error 1.9e-9.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double exact_exp2(double x) {
  constexpr double shift = 6755399441055744;  // 1.5 * 2^52: leaves the rounded number in the low bits
  const double shifted = x + shift;
  const double r = x - (shifted - shift);
  const double fraction = polynomial(
      r, 1.00000000056310134e+00, 6.93147206036587304e-01, 2.40226468446411268e-01, 5.55032812395912234e-02,
      9.61849185433351177e-03, 1.34001955598967186e-03, 1.53455787471636876e-04);
  return fraction * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

}  // namespace approximations

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double pow(double x, double y) { return std::pow(x, y); }

[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float pow(float x, float y) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  // What depends on the exponent are numbers, not truths: a truth that is the same for all elements keeps GCC
  // from making vector instructions of a loop.
  const bool whole = std::trunc(y) == y;
  const uint32_t sign_if_odd = whole & (std::trunc(0.5f * y) != 0.5f * y) ? 0x80000000u : 0u;
  const float at_negative = whole ? 1.0f : nan;
  const float at_nan = y == 0 ? 1.0f : nan;
  const float a = std::abs(x);
  // The logarithms of 0 and infinity are finite, as 0 times them must be 0.
  const double of_positive = a < infinity ? approximations::exact_log2(a) : 1e300;
  const double log2 = a == 0 ? -1e300 : of_positive;
  const double product = a == 1 ? 0.0 : static_cast<double>(y) * log2;
  // Beyond these the result is 0 or infinite; NaN passes.
  const double low = product < -200 ? -200.0 : product;
  const auto size = static_cast<float>(approximations::exact_exp2(low > 200 ? 200.0 : low));
  const float value =
      std::bit_cast<float>(std::bit_cast<uint32_t>(size) | (std::bit_cast<uint32_t>(x) & sign_if_odd));
  const float real = ((x < 0) & (a < infinity)) ? value * at_negative : value;
  return x == 1 ? 1.0f : x != x ? at_nan : real;
}

/// Whether fmod of the floats a and b holds on the CPU: their quotient is cut right in double. Formulas with
/// it have an `is_near` (ops/elementwise/map_arrays.h).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool remainder_is_near(float a, float b) {
  const float size = std::abs(b);
  return (std::abs(a) < size * 0x1p28f) & (size < std::numeric_limits<float>::infinity());
}

/// a - b trunc(a / b), exactly.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double fmod(double a, double b) { return std::fmod(a, b); }
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float fmod(float a, float b) {
#if PLEAT_DEVICE_CODE
  return std::fmod(a, b);
#else
  const double x = static_cast<double>(a);
  const double y = static_cast<double>(b);
  return std::copysign(static_cast<float>(x - std::trunc(x / y) * y), a);
#endif
}

}  // namespace pleat::ops::vmath
