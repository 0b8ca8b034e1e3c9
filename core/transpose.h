// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

/// The transposition of a matrix in memory, by square blocks that are turned in vector registers.

namespace pleat {
namespace detail {

/// A row of a block: as many elements of so many bytes as its columns.
template <std::size_t bytes>
struct BlockRow;
template <>
struct BlockRow<1> {
  using type = unsigned char __attribute__((vector_size(16)));
};
template <>
struct BlockRow<2> {
  using type = unsigned short __attribute__((vector_size(32)));
};
template <>
struct BlockRow<4> {
  using type = unsigned int __attribute__((vector_size(64)));
};
template <>
struct BlockRow<8> {
  using type = unsigned long long __attribute__((vector_size(64)));
};

/// rows[2 i] and rows[2 i + 1] = the elements of rows i and i + n/2 in turns. That turns the bits of an
/// element's place (row, column) round by one: as often as a row number has bits, it has changed row for
/// column.
template <class Row, std::size_t... i>
void interleave_halves(Row* rows, std::index_sequence<i...>) {
  constexpr std::size_t n = sizeof...(i);
  Row next[n];
  for (std::size_t r = 0; r < n / 2; ++r) {
    next[2 * r] = __builtin_shufflevector(rows[r], rows[r + n / 2], (i / 2 + i % 2 * n)...);
    next[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + n / 2], (n / 2 + i / 2 + i % 2 * n)...);
  }
  for (std::size_t r = 0; r < n; ++r) rows[r] = next[r];
}

template <class T, std::size_t n>
void transpose_block(T* to, int64_t to_row, const T* from, int64_t from_row) {
  typename BlockRow<sizeof(T)>::type rows[n];
  for (std::size_t r = 0; r < n; ++r)
    std::memcpy(&rows[r], from + static_cast<int64_t>(r) * from_row, sizeof rows[r]);
  for (std::size_t bit = 1; bit < n; bit *= 2) interleave_halves(rows, std::make_index_sequence<n>());
  for (std::size_t r = 0; r < n; ++r)
    std::memcpy(to + static_cast<int64_t>(r) * to_row, &rows[r], sizeof rows[r]);
}

}  // namespace detail

/// to[c, r] = from[r, c] for all rows and columns of `from`; `to_row` and `from_row` are the distances of
/// rows.
template <class T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  constexpr int64_t n = sizeof(typename detail::BlockRow<sizeof(T)>::type) / sizeof(T);
  constexpr int64_t stretch = 4 * n;  // of a row at a time: neighbouring cache lines
  for (int64_t start = 0; start < columns; start += stretch) {
    const int64_t end = std::min(columns, start + stretch);
    for (int64_t r = 0; r < rows; r += n)
      for (int64_t c = start; c < end; c += n) {
        const T* block = from + r * from_row + c;
        T* turned = to + c * to_row + r;
        const int64_t height = std::min(n, rows - r);
        const int64_t width = std::min(n, end - c);
        if (height == n && width == n)
          detail::transpose_block<T, static_cast<std::size_t>(n)>(turned, to_row, block, from_row);
        else
          for (int64_t i = 0; i < width; ++i)
            for (int64_t j = 0; j < height; ++j) turned[i * to_row + j] = block[j * from_row + i];
      }
  }
}

}  // namespace pleat
