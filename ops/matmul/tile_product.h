// Private header: not installed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "pleat/core/base/simd.h"

/// The innermost loop of matrix products: a tile of the result summed in registers.

namespace pleat::ops {

/// Rows of memory that will be needed, which full tiles fetch on their way: a line of each row.
template <class T>
struct UpcomingRows {
  const T* first;
  int64_t step;   ///< from row to row
  int64_t lines;  ///< of a row that are not fetched yet
};

/// The operands of result[i, lane] = start[i, lane] + the sum over d < depth of a[i, d] b[d, lane]: rows of
/// `result`, of `start` and of b are vectors in memory, a is read element by element. `start` may be
/// `result`.
template <class T>
struct TileProduct {
  const T* a;
  int64_t a_row;    ///< from row to row of a
  int64_t a_depth;  ///< from d to d + 1
  const T* b;
  int64_t b_depth;
  int64_t depth;
  T* result;
  int64_t result_row;
  const T* start = nullptr;  ///< none: 0
  int64_t start_row = 0;     ///< 0: one row for all
  int64_t b_panel = 0;       ///< from panel to panel of b, where a tile is of several
  std::span<UpcomingRows<T>> upcoming = {};
};

/// A tile of `panels` panels of `vectors` vectors each, beside one another in the result.
template <class T, int rows, int vectors, int panels = 1>
void multiply_tile(const TileProduct<T>& p) {
  using simd::for_constants;
  using simd::lanes;
  using V = simd::Vector<T>;
  constexpr int across = panels * vectors;
  V total[rows][across];
  for_constants<rows>([&](auto i) {
    for_constants<across>([&](auto v) {
      total[i][v] = p.start != nullptr ? simd::load(p.start + i * p.start_row + v * lanes<T>) : V{};
    });
  });
  const T* a = p.a;
  const T* b = p.b;
  constexpr bool fetches = rows == simd::tile_rows && panels == 1;
  const T* upcoming = b;
  int64_t upcoming_step = 0;
  if constexpr (fetches)
    for (UpcomingRows<T>& next : p.upcoming) {
      if (next.lines == 0) continue;
      --next.lines;
      upcoming = std::exchange(next.first, next.first + 64 / sizeof(T));
      upcoming_step = next.step;
      break;
    }
  for (int64_t d = 0; d < p.depth; ++d, a += p.a_depth, b += p.b_depth, upcoming += upcoming_step) {
    if constexpr (fetches) __builtin_prefetch(upcoming, 0, 2);
    V lane[across];
    for_constants<across>(
        [&](auto v) { lane[v] = simd::load(b + v / vectors * p.b_panel + v % vectors * lanes<T>); });
    for_constants<rows>([&](auto i) {
      const V element = a[i * p.a_row] - V{};  // in every lane
      for_constants<across>([&](auto v) { total[i][v] += element * lane[v]; });
    });
  }
  for_constants<rows>([&](auto i) {
    for_constants<across>(
        [&](auto v) { simd::store(p.result + i * p.result_row + v * lanes<T>, total[i][v]); });
  });
}

/// All rows of a product with `vectors` vectors of columns, in tiles.
template <class T, int vectors>
void multiply_rows(TileProduct<T> p, int64_t rows) {
  constexpr int64_t most = simd::tile_rows;
  static constexpr auto kernels = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array{&multiply_tile<T, i + 1, vectors>...};
  }
  (std::make_integer_sequence<int, simd::tile_rows>());
  for (; rows > 0; rows -= most, p.a += most * p.a_row, p.result += most * p.result_row) {
    kernels[static_cast<std::size_t>(rows < most ? rows - 1 : most - 1)](p);
    if (p.start != nullptr) p.start += most * p.start_row;
  }
}

}  // namespace pleat::ops
