// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "pleat/core/base/simd.h"

/// The transposition of a matrix in memory, by square blocks that are turned in vector registers. This is
/// what NCHW <-> NHWC amounts to, image by image.

namespace pleat {
namespace detail {

/// A row of a block: as many elements of so many bytes as its columns.
template <std::size_t bytes>
struct BlockRow {
  using Element = std::conditional_t<
      bytes == 1, uint8_t,
      std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;
  static constexpr int size = bytes == 1 ? 16 : std::min(32, simd::register_bytes);
  using type = simd::Vector<Element, size>;
};

/// Each round sets rows[2 i] and rows[2 i + 1] to the elements of rows i and i + n/2 interleaved. That turns
/// the bits of an element's place (row, column) round by one: as often as a row number has bits, it has
/// changed row for column.
template <class T, std::size_t n>
void transpose_block(T* to, int64_t to_row, const T* from, int64_t from_row) {
  using Row = BlockRow<sizeof(T)>;
  typename Row::type rows[n], next[n];
  for (std::size_t r = 0; r < n; ++r)
    std::memcpy(&rows[r], from + static_cast<int64_t>(r) * from_row, sizeof rows[r]);
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    for (std::size_t r = 0; r < n / 2; ++r)
      simd::interleave<typename Row::Element, Row::size>(rows[r], rows[r + n / 2], next[2 * r],
                                                         next[2 * r + 1]);
    for (std::size_t r = 0; r < n; ++r) rows[r] = next[r];
  }
  for (std::size_t r = 0; r < n; ++r)
    std::memcpy(static_cast<void*>(to + static_cast<int64_t>(r) * to_row), &rows[r], sizeof rows[r]);
}

}  // namespace detail

/// to[c, r] = from[r, c] for all rows and columns of `from`; `to_row` and `from_row` are the distances of
/// rows. By tiles, so that both sides use whole cache lines. The two must not overlap.
template <class T>
void transpose_matrix(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  constexpr int64_t n = sizeof(typename detail::BlockRow<sizeof(T)>::type) / sizeof(T);
  constexpr int64_t tile_rows = 8 * n;
  const int64_t tile_columns = columns < rows ? 8 * n : 4 * n;
  for (int64_t r = 0; r < rows; r += tile_rows) {
    const int64_t r_end = std::min(rows, r + tile_rows);
    for (int64_t c = 0; c < columns; c += tile_columns) {
      const int64_t c_end = std::min(columns, c + tile_columns);
      const auto one_by_one = [&](int64_t first_row, int64_t first_column, int64_t last_column)
          __attribute__((always_inline)) {
        // The longer loop inside.
        if (r_end - first_row < last_column - first_column)
          for (int64_t j = first_row; j < r_end; ++j)
            for (int64_t i = first_column; i < last_column; ++i) to[i * to_row + j] = from[j * from_row + i];
        else
          for (int64_t i = first_column; i < last_column; ++i)
            for (int64_t j = first_row; j < r_end; ++j) to[i * to_row + j] = from[j * from_row + i];
      };
      const auto turn = [&](int64_t j, int64_t i) {
        detail::transpose_block<T, static_cast<std::size_t>(n)>(to + i * to_row + j, to_row,
                                                                from + j * from_row + i, from_row);
      };
      // Whole blocks, so that the shorter rows are read, or written, in their order.
      const int64_t j_end = r + (r_end - r) / n * n, i_end = c + (c_end - c) / n * n;
      if (columns < rows)
        for (int64_t j = r; j < j_end; j += n)
          for (int64_t i = c; i < i_end; i += n) turn(j, i);
      else
        for (int64_t i = c; i < i_end; i += n)
          for (int64_t j = r; j < j_end; j += n) turn(j, i);
      for (int64_t i = c; i < i_end; i += n) one_by_one(j_end, i, i + n);
      one_by_one(r, i_end, c_end);
    }
  }
}

}  // namespace pleat
