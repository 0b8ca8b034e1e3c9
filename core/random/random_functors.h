// Private header: not installed.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/core/base/device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/random/box_muller.h"
#include "pleat/core/random/philox.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/half.h"

/// Random elements by their numbers, the same on all devices: element i of a draw has a counter of its own.

namespace pleat {

/// One draw of a Generator.
struct RandomDraw {
  uint64_t seed, draw;
  const uint64_t* state = nullptr;  ///< in a graph: the seed on the device, and a number to add to `draw`

  PLEAT_HOST_DEVICE std::array<uint32_t, 4> words(int64_t i) const {
    uint64_t key = seed, number = draw;
#if PLEAT_DEVICE_CODE  // only a GPU has graphs; the CPU's loops are vectorised without the branch
    if (state != nullptr) {
      key = state[0];
      number += state[1];
    }
#endif
    return philox(key, static_cast<uint64_t>(i), number);
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

/// The largest number of type `Stored` that is not above x, which lies in its range; for half types alone.
template <class Stored>
PLEAT_HOST_DEVICE float rounded_down(float x) {
  constexpr bool is_bfloat = std::is_same_v<Stored, BFloat16>;
  constexpr uint32_t rest = is_bfloat ? 0xffff : 0x1fff;  // bits of the mantissa that it lacks
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t away_from_zero = bits >> 31 != 0 ? rest : 0;
  const float down = std::bit_cast<float>((bits + away_from_zero) & ~rest);
  if constexpr (is_bfloat) return down;
  const float subnormal = std::floor(x * 0x1p24f) * 0x1p-24f;
  return std::fabs(x) < 0x1p-14f ? subnormal : down;
}

/// Numbers of type `Stored`, as T, from `low` to below `low + range`: of the number that T has, the nearest
/// one not above. So P(x < p) is p for each p that the type has, to the precision of T.
template <class T, class Stored = T>
struct UniformElement {
  RandomDraw random;
  T low, range;
  T first, last;  ///< the ends of what `Stored` has there, which rounding would pass
  T* out;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { out[i] = number(unit<T>(random.words(i), 0)); }

  /// Of a number on [0, 1).
  PLEAT_HOST_DEVICE T number(T on_unit) const {
    T x = std::fma(range, on_unit, low);
    if constexpr (!std::is_same_v<T, Stored>) x = rounded_down<Stored>(x);
    const T raised = x < first ? first : x;
    return raised > last ? last : raised;
  }
};

/// The type in which elements of T are drawn.
template <class T>
using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The number of type T beside x, above it or below.
template <class T>
T beside(T x, bool above) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    return std::nextafter(x, above ? infinity : -infinity);
  } else {
    const bool is_negative = x.bits >> 15 != 0, is_zero = (x.bits & 0x7fff) == 0;
    x.bits =
        static_cast<uint16_t>(is_zero ? (above ? 0x0001 : 0x8001) : x.bits + (above != is_negative ? 1 : -1));
    return x;
  }
}

/// The ends of what T has from `low` to `high`, which belongs to it where it is `closed`; the number nearest
/// to `low` twice where it has none.
template <class T>
std::array<T, 2> ends_of(double low, double high, bool closed) {
  T first = convert<T>(low), last = convert<T>(high);
  while (convert<double>(first) < low) first = beside(first, true);
  while (convert<double>(last) > high || (!closed && convert<double>(last) == high))
    last = beside(last, false);
  if (convert<double>(last) < convert<double>(first)) first = last = convert<T>(low);
  return {first, last};
}

template <class T>
UniformElement<Drawn<T>, T> uniform_element(const RandomDraw& random, double low, double high,
                                            Drawn<T>* out) {
  using D = Drawn<T>;
  const auto [first, last] = ends_of<T>(low, high, false);
  return {random, static_cast<D>(low), static_cast<D>(high - low), convert<D>(first), convert<D>(last), out};
}

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

/// Four elements a call: element i is word i % 4 of counter i / 4. Masks are large, and 32 bits are enough to
/// compare with a probability of limit / 2^32.
struct BernoulliBlock {
  RandomDraw random;
  uint64_t limit;
  int64_t n;
  bool* out;

  PLEAT_HOST_DEVICE void operator()(int64_t block) const {
    const auto words = random.words(block);
    for (int64_t j = 0; j < 4 && 4 * block + j < n; ++j)
      out[4 * block + j] = is_true(words[static_cast<std::size_t>(j)]);
  }

  PLEAT_HOST_DEVICE bool is_true(uint32_t word) const { return word < limit; }
};

/// The next draw of `generator`, to make the elements of a mask true with probability `p`.
BernoulliBlock next_mask(const char* op, double p, const Tensor& mask, Generator& generator);

}  // namespace pleat
