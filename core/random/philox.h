#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace pleat {

constexpr uint64_t wide_product(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
  // nvcc would make everything around it 64-bit arithmetic, which takes several instructions each.
  if (!std::is_constant_evaluated()) return uint64_t{__umulhi(a, b)} << 32 | a * b;
#endif
  return uint64_t{a} * b;
}

/// Philox 4x32-10: four random 32-bit words for a 128-bit counter and a 64-bit key.
/// Source: Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11.
constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  // Plain variables: loops that draw for successive counters are vectorised, of arrays they are not.
  auto c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  auto c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = wide_product(0xD2511F53u, c0);
    const uint64_t p1 = wide_product(0xCD9E8D57u, c2);
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA'14): seeds that have little in common.
constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/// A random word as a float on [0, 1) with 24 bits, and two words as a double with 53.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
constexpr double unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

}  // namespace pleat
