// Private header: not installed.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "pleat/core/base/host_device.h"

/// Normally distributed numbers from uniform ones, to the same bit on every CPU and GPU: only operations that
/// IEEE 754 rounds in one way are used. The libraries' log and cos differ in the last bits from machine to
/// machine, and so does a product that is added to something, unless std::fma rounds it once.

namespace pleat::box_muller {

/// 1/(2k+1) + z/(2k+3) + z^2/(2k+5) ... with last + 1 - k terms: atanh(s) = s series(s^2) for k = 0.
template <int k, int last, class T>
PLEAT_HOST_DEVICE T atanh_series(T z) {
  constexpr T first = T(1) / T(2 * k + 1);
  if constexpr (k == last)
    return first;
  else
    return std::fma(z, atanh_series<k + 1, last>(z), first);
}

/// cos(x) for sine = 0 and sin(x) / x for sine = 1, by Taylor's series in z = x^2 to the term z^last.
template <int sine, int k, int last, class T>
PLEAT_HOST_DEVICE T circle_series(T z) {
  if constexpr (k == last) {
    return T(1);
  } else {
    constexpr T ratio = T(-1) / T((2 * k + 1 + sine) * (2 * k + 2 + sine));
    return std::fma(z * ratio, circle_series<sine, k + 1, last>(z), T(1));
  }
}

/// The natural logarithm of a normal number: x = m 2^e with 2/3 <= m < 4/3, log m = 2 atanh((m-1) / (m+1)).
template <class T>
PLEAT_HOST_DEVICE T log(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  using Bits = std::conditional_t<single, int32_t, int64_t>;
  constexpr int mantissa = single ? 23 : 52;
  constexpr int terms =
      single ? 5 : 12;  // z <= 1/25: what is left out is below half a unit in the last place
  constexpr Bits two_thirds = std::bit_cast<Bits>(T(2) / T(3));
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits exponent = (bits - two_thirds) >> mantissa;
  const T m = std::bit_cast<T>(static_cast<Bits>(bits - exponent * (Bits(1) << mantissa)));
  const T s = (m - 1) / (m + 1);
  return std::fma(static_cast<T>(exponent), std::numbers::ln2_v<T>, 2 * s * atanh_series<0, terms>(s * s));
}

/// cos(2 pi t) for 0 <= t <= 1, from the nearest quarter of the circle.
template <class T>
PLEAT_HOST_DEVICE T cos_turns(T t) {
  constexpr int terms = std::is_same_v<T, float> ? 5 : 9;
  const int quarter = static_cast<int>(4 * t + T(0.5));
  const T x = (4 * t - static_cast<T>(quarter)) * (std::numbers::pi_v<T> / 2);
  const T size = quarter % 2 == 0 ? circle_series<0, 0, terms>(x * x) : x * circle_series<1, 0, terms>(x * x);
  return quarter % 4 == 1 || quarter % 4 == 2 ? -size : size;
}

/// sqrt(-2 ln u) cos(2 pi v) is normal for u uniform on (0, 1], v on [0, 1]. Source: Box, Muller: "A note on
/// the generation of random normal deviates", Annals of Mathematical Statistics 29 (1958).
template <class T>
PLEAT_HOST_DEVICE T normal(T u, T v) {
  return std::sqrt(-2 * log(u)) * cos_turns(v);
}

}  // namespace pleat::box_muller
