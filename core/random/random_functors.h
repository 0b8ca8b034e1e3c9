// Private header: not installed.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/random/box_muller.h"
#include "pleat/core/random/philox.h"

/// Random elements by their numbers, the same on all devices: element i of a draw has a counter of its own.

namespace pleat {

/// One draw of a Generator.
struct RandomDraw {
  uint64_t seed, draw;
  const uint64_t* state = nullptr;  ///< in a graph: the seed on the device, and a number to add to `draw`

  PLEAT_HOST_DEVICE std::array<uint32_t, 4> words(int64_t i) const {
#if PLEAT_DEVICE_CODE  // only a GPU has graphs; the CPU's loops are vectorised without the branch
    if (state != nullptr) return philox(state[0], static_cast<uint64_t>(i), state[1] + draw);
#endif
    return philox(seed, static_cast<uint64_t>(i), draw);
  }
  PLEAT_HOST_DEVICE uint64_t word64(int64_t i) const {
    const auto four = words(i);
    return (uint64_t{four[0]} << 32) | four[1];
  }
};

/// A number on [0, 1) from the words number `pair` and, for double, the one after it.
template <class T>
PLEAT_HOST_DEVICE T unit(const std::array<uint32_t, 4>& words, std::size_t pair) {
  if constexpr (std::is_same_v<T, double>)
    return unit_double(words[pair], words[pair + 1]);
  else
    return unit_float(words[pair]);
}

template <class T>
struct UniformElement {
  RandomDraw random;
  T low, range;
  T* out;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    out[i] = std::fma(range, unit<T>(random.words(i), 0), low);
  }
};

template <class T>
struct NormalElement {
  RandomDraw random;
  T mean, std;
  T* out;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const auto words = random.words(i);
    out[i] = std::fma(std, box_muller::normal(1 - unit<T>(words, 0), unit<T>(words, 2)), mean);
  }
};

/// `word` scaled to [0, range): the high half of a 64 by 64 bit product, uniform up to a bias of
/// range / 2^64.
PLEAT_HOST_DEVICE inline uint64_t scale_word(uint64_t word, uint64_t range) {
  __extension__ typedef unsigned __int128 uint128;  // an extension of every 64-bit gcc and clang, and of nvcc
  return static_cast<uint64_t>((uint128{word} * range) >> 64);
}

/// The same number for a range below 2^32, by products that vectors have.
PLEAT_HOST_DEVICE inline uint64_t scale_word_little(uint64_t word, uint64_t range) {
  return ((word >> 32) * range + ((word & 0xFFFFFFFFu) * range >> 32)) >> 32;
}

struct IntegerElement {
  RandomDraw random;
  int64_t low;
  uint64_t range;
  int64_t* out;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { put(i, scale_word(random.word64(i), range)); }

  void run(int64_t first, int64_t last) const {
    if (range >> 32 != 0) {
      for (int64_t i = first; i < last; ++i) (*this)(i);
      return;
    }
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) put(i, scale_word_little(random.word64(i), range));
  }

  PLEAT_HOST_DEVICE void put(int64_t i, uint64_t scaled) const {
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + scaled);
  }
};

/// Four elements a call: element i is word i % 4 of counter i / 4. Masks are large, and 24 bits are enough to
/// compare with a probability of limit / 2^24.
struct BernoulliBlock {
  RandomDraw random;
  uint32_t limit;
  int64_t n;
  bool* out;

  PLEAT_HOST_DEVICE void operator()(int64_t block) const {
    const auto words = random.words(block);
    for (int64_t j = 0; j < 4 && 4 * block + j < n; ++j)
      out[4 * block + j] = (words[static_cast<std::size_t>(j)] >> 8) < limit;
  }
};

}  // namespace pleat
