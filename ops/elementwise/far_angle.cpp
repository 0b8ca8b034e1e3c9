#include <bit>
#include <cmath>
#include <cstdint>

#include "pleat/ops/elementwise/vector_trigonometry.h"

/// Angles of any size. C libraries differ here: that of mingw-w64 knows 66 bits of pi, so that its
/// sin(1e16) has four right digits.

namespace pleat::ops::vmath::approximations {
namespace {

/// The first 1,280 bits of 2 / pi after the point.
constexpr uint64_t two_over_pi[] = {
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D};

/// 64 of them, from the one with the weight 2^-(at + 1) on; those before the first are 0.
uint64_t bits_from(int64_t at) {
  const auto word = [](int64_t index) { return index < 0 ? 0 : two_over_pi[index]; };
  const int64_t index = at >> 6, offset = at & 63;
  return offset == 0 ? word(index) : word(index) << offset | word(index + 1) >> (64 - offset);
}

}  // namespace

// Payne and Hanek, "Radian reduction for trigonometric functions" (SIGNUM Newsletter 18, 1983): of |x| 2 / pi
// = m 2^e 2 / pi with a whole number m below 2^53, only the bits of 2 / pi from 2^(1 - e) down make parts
// that are no multiples of 4. 192 of them leave 75 right bits of the fraction, which of a double is never
// below 2^-62.
Turned<double> reduce_any(double x) {
  if (!std::isfinite(x)) return {0, x - x, 0};
  const auto bits = std::bit_cast<uint64_t>(std::abs(x));
  const int64_t e = static_cast<int64_t>(bits >> 52) - 1075;
  const uint64_t m = (bits & 0x000FFFFFFFFFFFFF) | 0x0010000000000000;
  __extension__ using Wide128 = unsigned __int128;
  const Wide128 low = Wide128{m} * bits_from(e - 2 + 128);
  const Wide128 middle = Wide128{m} * bits_from(e - 2 + 64) + (low >> 64);
  const uint64_t product[3] = {m * bits_from(e - 2) + static_cast<uint64_t>(middle >> 64),
                               static_cast<uint64_t>(middle), static_cast<uint64_t>(low)};
  // Two bits of quarters, then the fraction, of which the nearer end counts.
  const bool is_upper = (product[0] >> 61 & 1) != 0;
  const uint64_t quarters = (product[0] >> 62) + (is_upper ? 1 : 0);
  Wide128 fraction = (Wide128{product[0]} << 66) | (Wide128{product[1]} << 2) | product[2] >> 62;
  uint64_t rest = product[2] << 2;
  if (is_upper) {
    rest = -rest;
    fraction = ~fraction + (rest == 0 ? 1 : 0);
  }
  const int zeros = std::countl_zero(static_cast<uint64_t>(fraction >> 64));
  if (zeros > 0) fraction = fraction << zeros | rest >> (64 - zeros);
  const double upper = std::ldexp(static_cast<double>(static_cast<uint64_t>(fraction >> 75)), -53 - zeros);
  const double lower = std::ldexp(static_cast<double>(static_cast<uint64_t>(fraction >> 11)), -117 - zeros);
  constexpr double half_pi = 1.57079632679489655800e+00, half_pi_rest = 6.12323399573676603587e-17;
  const double product_rest = upper * half_pi_rest + lower * half_pi;
  const double r = std::fma(upper, half_pi, product_rest);
  const double lost = std::fma(upper, half_pi, -r) + product_rest;
  return {quarters, is_upper ? -r : r, is_upper ? -lost : lost};
}

}  // namespace pleat::ops::vmath::approximations
