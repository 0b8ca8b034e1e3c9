// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/base/streaming.h"

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

/// How the result of a transposition is written.
enum class Stores : unsigned char {
  cached,
  fetched,   ///< lines are fetched before they are written: of results outside the second-level cache
  streamed,  ///< past the caches (core/base/streaming.h); the result and its rows begin cache lines
};

/// to[c, r] = from[r, c] for all rows and columns of `from`; `to_row` and `from_row` are the distances of
/// rows. By tiles of squares that are a cache line wide, so that both sides use whole lines. What is read
/// soon is fetched meanwhile: a processor follows few rows at a time by itself. The two must not overlap.
template <class T>
void transpose_matrix(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns,
                      Stores stores = Stores::cached) {
  constexpr int64_t n = sizeof(typename detail::BlockRow<sizeof(T)>::type) / sizeof(T);
  constexpr int64_t line = cache_line / static_cast<int64_t>(sizeof(T));
  // The shorter rows are read, or written, in their order, and four lines of each of the longer ones.
  const bool along_columns = columns >= rows;
  const int64_t tile_rows = along_columns ? 4 * line : rows,
                tile_columns = along_columns ? columns : 4 * line;
  // From a square to the one that comes eight later.
  const int64_t across = std::clamp<int64_t>(ceil_div(std::min(rows, columns), line), 1, 4);
  const int64_t lines_ahead = 8 / across * line;
  const int64_t from_ahead = lines_ahead * (along_columns ? 1 : from_row);
  const int64_t to_ahead = lines_ahead * (along_columns ? to_row : 1);
  const auto block = [&](T * at, int64_t row, int64_t j, int64_t i) __attribute__((always_inline)) {
    detail::transpose_block<T, static_cast<std::size_t>(n)>(at, row, from + j * from_row + i, from_row);
  };
  // Blocks of the rows from j to j_end, and of the columns from i to i_end, not more than a line of both.
  const auto square = [&](int64_t j, int64_t j_end, int64_t i, int64_t i_end) __attribute__((always_inline)) {
    for (int64_t k = j; k < j_end; ++k) __builtin_prefetch(from + k * from_row + i + from_ahead, 0, 2);
    if (stores == Stores::streamed && j_end - j == line) {
      alignas(cache_line) T lines[line * line];
      for (int64_t b = i; b < i_end; b += n)
        for (int64_t a = j; a < j_end; a += n) block(lines + (b - i) * line + a - j, line, a, b);
      for (int64_t b = i; b < i_end; ++b)
        stream_bytes(to + b * to_row + j, lines + (b - i) * line, cache_line);
      return;
    }
    if (stores == Stores::fetched)
      for (int64_t k = i; k < i_end; ++k) __builtin_prefetch(to + k * to_row + j + to_ahead, 1, 2);
    for (int64_t b = i; b < i_end; b += n)
      for (int64_t a = j; a < j_end; a += n) block(to + b * to_row + a, to_row, a, b);
  };
  const auto one_by_one = [&](int64_t j, int64_t j_end, int64_t i, int64_t i_end) {
    // The longer loop inside.
    if (j_end - j < i_end - i)
      for (int64_t a = j; a < j_end; ++a)
        for (int64_t b = i; b < i_end; ++b) to[b * to_row + a] = from[a * from_row + b];
    else
      for (int64_t b = i; b < i_end; ++b)
        for (int64_t a = j; a < j_end; ++a) to[b * to_row + a] = from[a * from_row + b];
  };
  for (int64_t r = 0; r < rows; r += tile_rows) {
    const int64_t r_end = std::min(rows, r + tile_rows), j_end = r + (r_end - r) / n * n;
    for (int64_t c = 0; c < columns; c += tile_columns) {
      const int64_t c_end = std::min(columns, c + tile_columns), i_end = c + (c_end - c) / n * n;
      if (along_columns)
        for (int64_t i = c; i < i_end; i += line)
          for (int64_t j = r; j < j_end; j += line)
            square(j, std::min(j_end, j + line), i, std::min(i_end, i + line));
      else
        for (int64_t j = r; j < j_end; j += line)
          for (int64_t i = c; i < i_end; i += line)
            square(j, std::min(j_end, j + line), i, std::min(i_end, i + line));
      for (int64_t i = c; i < i_end; i += n) one_by_one(j_end, r_end, i, i + n);
      one_by_one(r, r_end, i_end, c_end);
    }
  }
}

}  // namespace pleat
