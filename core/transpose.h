// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The transposition of a matrix in memory. This is what NCHW <-> NHWC amounts to, image by image.

namespace pleat {
namespace detail {

/// Transposes 8 x 8 elements of four bytes in registers.
inline void transpose_8x8(void* to, int64_t to_row, const void* from, int64_t from_row) {
  using V [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = uint32_t;
  V a[8], b[8];
  for (int i = 0; i < 8; ++i)
    a[i] = *reinterpret_cast<const V*>(static_cast<const std::byte*>(from) + 4 * i * from_row);
  for (int i = 0; i < 4; ++i) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (const int i : {0, 1, 4, 5}) {
    a[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    a[i + 2] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (const int i : {0, 2, 4, 6}) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; ++i) *reinterpret_cast<V*>(static_cast<std::byte*>(to) + 4 * i * to_row) = b[i];
}

}  // namespace detail

/// to[c, r] = from[r, c] for all rows and columns of `from`; `to_row` and `from_row` are the distances of
/// rows. By tiles, so that both sides use whole cache lines. The two must not overlap.
template <class T>
void transpose_matrix(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  constexpr bool in_registers = sizeof(T) == 4;
  constexpr int64_t tile_rows = in_registers ? 64 : 32;
  constexpr int64_t tile_columns = 32;
  for (int64_t r = 0; r < rows; r += tile_rows) {
    const int64_t r_end = std::min(rows, r + tile_rows);
    for (int64_t c = 0; c < columns; c += tile_columns) {
      const int64_t c_end = std::min(columns, c + tile_columns);
      const auto one_by_one = [&](int64_t first_row, int64_t first_column, int64_t last_column) {
        for (int64_t i = first_column; i < last_column; ++i)
          for (int64_t j = first_row; j < r_end; ++j) to[i * to_row + j] = from[j * from_row + i];
      };
      int64_t i = c;
      if constexpr (in_registers)
        for (; i + 8 <= c_end; i += 8) {
          int64_t j = r;
          for (; j + 8 <= r_end; j += 8)
            detail::transpose_8x8(to + i * to_row + j, to_row, from + j * from_row + i, from_row);
          one_by_one(j, i, i + 8);
        }
      one_by_one(r, i, c_end);
    }
  }
}

}  // namespace pleat
