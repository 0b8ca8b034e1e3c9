// Private header: not installed.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "pleat/core/grid_offsets.h"
#include "pleat/core/number_array.h"

/// Sorting as sorting of unsigned numbers, which a radix sort can do.

namespace pleat::ops {

/// The unsigned number that has a value's place in the order: a NaN above all numbers, and -0 where 0 is.
template <class T>
PLEAT_HOST_DEVICE auto ordered_bits(T value) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return static_cast<Key>(~Key(0));
    if (value == 0) return sign;
    const Key bits = std::bit_cast<Key>(value);
    return static_cast<Key>((bits & sign) != 0 ? ~bits : bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(static_cast<Key>(value) ^ sign);
  } else {
    return static_cast<Key>(value);
  }
}

/// The key of one element of [lines, n].
template <class T>
struct SortKey {
  using Key = decltype(ordered_bits(T{}));
  GridOffsets<1> x_at;
  NumberArray<T> x;
  bool descending;
  Key* keys;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Key key = ordered_bits(x.load(x_at.at(i)[0]));
    keys[i] = descending ? static_cast<Key>(~key) : key;
  }
};

/// One of the first k of each line [lines, k], taken to where it belongs by the order [lines, n].
template <class T>
struct TakeOrdered {
  GridOffsets<3> at;  ///< of a line in x, of an element in values and in indices
  FastDivider k;
  int64_t n;
  int64_t x_step;
  const int64_t* order;
  const T* x;
  T* values;
  int64_t* indices;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t place = i;
    const int64_t line = k.divide(place);
    const int64_t index = order[line * n + place];
    const auto offsets = at.at(i);
    values[offsets[1]] = x[offsets[0] + index * x_step];
    indices[offsets[2]] = index;
  }
};

}  // namespace pleat::ops
