// Private header: not installed.
#pragma once

#include <cstdint>
#include <utility>

#include "pleat/core/base/simd.h"

/// The transposition of a matrix of 2 to 4 rows or columns, the channels of colours: vectors are put together
/// from those of each row, and taken apart.

namespace pleat {
namespace detail {

/// As many vectors as there are in `from`: where `apart`, vector k has every K-th element of all of these,
/// from element k on; else the vectors together have element 0 of each of these, then element 1 of each, and
/// so on.
template <bool apart, int k, int K, class V, int... e>
[[gnu::always_inline]] inline V picked(const V (&from)[K], std::integer_sequence<int, e...>) {
  constexpr int n = sizeof...(e);
  constexpr int vector[] = {(apart ? (e * K + k) / n : (k * n + e) % K)...};
  constexpr int place[] = {(apart ? (e * K + k) % n : (k * n + e) / K)...};
  V result = __builtin_shufflevector(from[0], from[1], (vector[e] == 1 ? n + place[e] : place[e])...);
  simd::for_constants<K - 2>([&](auto i) {
    constexpr int next = i + 2;
    result = __builtin_shufflevector(result, from[next], (vector[e] == next ? n + place[e] : e)...);
  });
  return result;
}

/// to[c, r] = from[r, c] of `few` rows, or where `apart` of `few` columns, both dense on that side. Returns
/// how many of the others it has done, the most whole vectors.
template <bool apart, int few, class T>
int64_t transpose_few(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t many) {
  using Lanes = std::make_integer_sequence<int, static_cast<int>(simd::lanes<T>)>;
  int64_t done = 0;
  for (; done + simd::lanes<T> <= many; done += simd::lanes<T>) {
    simd::Vector<T> vectors[few];
    simd::for_constants<few>([&](auto k) {
      const T* const next = apart ? from + done * few + k * simd::lanes<T> : from + k * from_row + done;
      if (apart) __builtin_prefetch(next + 4096 / sizeof(T));
      vectors[k] = simd::load(next);
    });
    simd::for_constants<few>([&](auto k) {
      simd::store(apart ? to + k * to_row + done : to + done * few + k * simd::lanes<T>,
                  picked<apart, k>(vectors, Lanes()));
    });
  }
  return done;
}

}  // namespace detail

/// to[c, r] = from[r, c] where `to` is dense and there are 2 to 4 rows, or `from` is dense and has so many
/// columns; else false. `to_row` and `from_row` are the distances of rows. The two must not overlap.
template <class T>
bool transpose_few(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  const bool together = to_row == rows && rows <= 4, apart = !together && from_row == columns;
  int64_t done = -1;
  simd::for_constants<3>([&](auto i) {
    constexpr int few = i + 2;
    if (together && rows == few)
      done = detail::transpose_few<false, few>(to, to_row, from, from_row, columns);
    else if (apart && columns == few)
      done = detail::transpose_few<true, few>(to, to_row, from, from_row, rows);
  });
  if (done < 0) return false;
  for (int64_t r = apart ? done : 0; r < rows; ++r)
    for (int64_t c = apart ? 0 : done; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
  return true;
}

}  // namespace pleat
