// Private header: not installed.
#pragma once

#include "pleat/ops/elementwise/vector_math.h"

/// Powers and remainders, as the functions of vector_math.h. Those of floats are in double inside, which has
/// the bits that the logarithm of a power and the quotient of a remainder need; those of doubles in sums of
/// two.

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

/// upper + lower, where upper has 21 bits, so that the product of two such is exact.
struct Sum {
  double upper, lower;
};
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double upper_half(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & Constants<double>::upper);
}

/// log2 of a finite a > 0 as fdlibm's pow takes it (Sun, 1993): relative error 2^-65.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline Sum long_log2(double a) {
  const auto [e, f] = split(a);
  // s = f / (2 + f) = s_upper + s_lower.
  const double s = f / (2 + f);
  const double s_upper = upper_half(s);
  const double divisor = upper_half(2 + f);
  const double s_lower = ((f - s_upper * divisor) - s_upper * (f - (divisor - 2))) / (2 + f);
  // log(1 + f) = 2/3 s (3 + z + z^2 P(z)) with z = s^2.
  const double z = s * s;
  const double rest =
      z * z *
          polynomial(z, 6.00000000000034062e-01, 4.28571428551379252e-01, 3.33333337820184816e-01,
                     2.72726763565452834e-01, 2.30801452542895025e-01, 1.98850042399512261e-01,
                     1.97966162286040442e-01) +
      s_lower * (s_upper + s);
  const double square = s_upper * s_upper;
  const double factor = upper_half(3 + square + rest);
  const double factor_rest = rest - ((factor - 3) - square);
  const double product = s_upper * factor;
  const double product_rest = s_lower * factor + factor_rest * s;
  const double upper = upper_half(product + product_rest);
  const double lower = product_rest - (upper - product);
  // 2 / (3 ln 2), which is also the sum of an upper half and a rest.
  const double scaled = 9.61796700954437255859e-01 * upper;
  const double scaled_rest = -7.02846165095275826516e-09 * upper + lower * 9.61796693925975554329e-01;
  const double whole = upper_half((scaled + scaled_rest) + e);
  return {whole, scaled_rest - ((whole - e) - scaled)};
}

/// 2^(high + low), where high has its integer part and low is small: 0 or infinite beyond the range.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double exp2_of_sum(double high, double low) {
  using C = Constants<double>;
  const double n = ((high + low) + C::shift) - C::shift;
  const double part = high - n;
  const double upper = upper_half(part + low);
  // In ln 2 = 0.693... as an upper half and a rest.
  const double product = upper * 6.93147182464599609375e-01;
  const double rest =
      (low - (upper - part)) * 6.93147180559945286227e-01 + upper * -1.90465429995776804525e-09;
  const double r = product + rest;
  const double lost = rest - (r - product);
  const double fraction = 1 + (expm1_reduced(r) + (lost + lost * r));
  const double half = 0.5 * n + C::shift;
  return fraction * power_of_two(half) * power_of_two((n - (half - C::shift)) + C::shift);
}

/// |x|^y from a = |x|: 2^(y log2 a), and what it is where one of them has no finite logarithm.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float power_of_size(float a, float y) {
  // The logarithms of 0 and infinity are finite, as 0 times them must be 0.
  const double of_positive = a < std::numeric_limits<float>::infinity() ? exact_log2(a) : 1e300;
  const double log2 = a == 0 ? -1e300 : of_positive;
  const double product = a == 1 ? 0.0 : static_cast<double>(y) * log2;
  // Beyond these the result is 0 or infinite; NaN passes.
  const double low = product < -200 ? -200.0 : product;
  return static_cast<float>(exact_exp2(low > 200 ? 200.0 : low));
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double power_of_size(double a, double y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double at_infinity = y == 0 ? 0.0 : y * infinity;
  const Sum log2 = long_log2(a);
  // Larger exponents give the same.
  const double exponent = std::abs(y) > 1e300 ? std::copysign(1e300, y) : y;
  const double upper = upper_half(exponent);
  const double high = upper * log2.upper;
  const double low = (exponent - upper) * log2.upper + exponent * log2.lower;
  const bool has_logarithm = (a > 0) & (a < infinity);
  const double at_end = a == 0 ? -at_infinity : at_infinity;
  // Beyond 1100 the result is 0 or infinite; NaN passes.
  const double sum = has_logarithm ? high + low : at_end;
  const bool far = std::abs(sum) > 1100;
  return exp2_of_sum(far             ? std::copysign(1100.0, sum)
                     : has_logarithm ? high
                                     : sum,
                     (far | !has_logarithm) ? 0.0 : low);
}

}  // namespace approximations

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T pow(T x, T y) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  using Bits = approximations::Bits<T>;
  constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
  // What depends on the exponent are numbers, not truths: a truth that is the same for all elements keeps GCC
  // from making vector instructions of a loop.
  const bool whole = std::trunc(y) == y;
  const Bits sign_if_odd = (whole & (std::trunc(T(0.5) * y) != T(0.5) * y)) ? sign : 0;
  const T at_negative = whole ? T(1) : nan;
  const T at_nan = y == 0 ? T(1) : nan;
  const T a = std::abs(x);
  const T size = approximations::power_of_size(a, y);
  const T value = std::bit_cast<T>(std::bit_cast<Bits>(size) | (std::bit_cast<Bits>(x) & sign_if_odd));
  const T real = ((x < 0) & (a < infinity)) ? value * at_negative : value;
  return x == 1 ? T(1) : x != x ? at_nan : real;
}

/// Whether fmod of a and b holds on the CPU: that of floats cuts their quotient right in double, that of
/// doubles by at most 1 too far. Formulas with it have an `is_near` (ops/elementwise/map_arrays.h).
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool remainder_is_near(float a, float b) {
  const float left = std::abs(a), size = std::abs(b);
  return (left < size * 0x1p28f) & (size < std::numeric_limits<float>::infinity());
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline bool remainder_is_near(double a, double b) {
  // Without an instruction, fma is the C library's: that of mingw-w64 rounds the product to 64 bits.
#if defined(__FMA__) || defined(__aarch64__)
  constexpr double quotients = 0x1p50;
#else
  constexpr double quotients = 0x1p10;
#endif
  const double left = std::abs(a), size = std::abs(b);
  return (left < size * quotients) & (size < std::numeric_limits<double>::infinity());
}

/// a - b trunc(a / b), exactly.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T fmod(T a, T b) {
#if PLEAT_DEVICE_CODE
  return std::fmod(a, b);
#else
  if constexpr (std::same_as<T, float>) {
    const double x = static_cast<double>(a);
    const double y = static_cast<double>(b);
    return std::copysign(static_cast<float>(x - std::trunc(x / y) * y), a);
  } else if constexpr (std::same_as<T, double>) {
    // Exact, as the result has no more bits than a and b.
    const double rest = std::fma(-std::trunc(a / b), b, a);
    const bool too_far = (rest != 0) & ((rest < 0) != (a < 0));
    return std::copysign(too_far ? rest + std::copysign(b, a) : rest, a);
  } else {
    return std::fmod(a, b);
  }
#endif
}

/// sqrt(x^2 + y^2), whatever their sizes: up to 1 epsilon; infinite where one is.
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline float hypot(float x, float y) {
#if PLEAT_DEVICE_CODE
  return std::hypot(x, y);
#else
  const double a = static_cast<double>(x), b = static_cast<double>(y);
  const float root = static_cast<float>(std::sqrt(a * a + b * b));
  const float width = std::abs(x), height = std::abs(y);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return ((width == infinity) | (height == infinity)) ? infinity : root;
#endif
}
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline double hypot(double x, double y) {
#if PLEAT_DEVICE_CODE
  return std::hypot(x, y);
#else
  const double a = std::abs(x), b = std::abs(y);
  const double most = a > b ? a : b;
  // Scaled where squares have no room or no bits.
  const double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1.0;
  const double scale_back = most > 0x1p500 ? 0x1p600 : most < 0x1p-400 ? 0x1p-600 : 1.0;
  const double p = scale * a, q = scale * b;
  const double root = std::sqrt(p * p + q * q) * scale_back;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return ((a == infinity) | (b == infinity)) ? infinity : root;
#endif
}

}  // namespace pleat::ops::vmath
