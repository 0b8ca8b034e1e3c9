#include "pleat/ops/matmul/gemm_panels.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/matmul/tile_product.h"

namespace pleat::ops {
namespace {

using simd::lanes;

/// So much of the depth is summed at a time that a panel of it stays in the first-level cache.
constexpr int64_t depth_block = 256;

/// Part of op(A): element [row, d] lies at data[row * row_step + d * depth_step].
template <class T>
struct Rows {
  const T* data;
  int64_t row_step, depth_step;
};

/// Rows and depths from some on: where they lie, or copied, where several panels read them, to `buffer`,
/// whose rows do not get into each other's way in a cache.
template <class T>
Rows<T> rows_of(const Gemm<T>& p, int64_t row, int64_t rows, int64_t first, int64_t depth, T* buffer) {
  if (p.transpose_a) {
    const T* const from = p.a + first * p.lda + row;
    for (int64_t d = 0; d < depth; ++d) std::copy_n(from + d * p.lda, rows, buffer + d * row_block);
    return {buffer, 1, row_block};
  }
  const T* const from = p.a + row * p.lda + first;
  if (p.n <= 2 * panel_columns<T>) return {from, p.lda, 1};
  constexpr int64_t step = depth_block + lanes<T>;
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * p.lda, depth, buffer + r * step);
  return {buffer, step, 1};
}

/// What is added to a product: a row for each of its rows, or one for all.
template <class T>
struct Start {
  const T* data = nullptr;  ///< none: 0
  int64_t row_step = 0;

  Start from_column(int64_t column) const { return {data == nullptr ? nullptr : data + column, row_step}; }
};

/// c = alpha sums + start.
template <class T>
void write(const T* sums, int64_t rows, int64_t columns, T alpha, Start<T> start, T* c, int64_t ldc) {
  for (int64_t r = 0; r < rows; ++r, sums += panel_columns<T>, c += ldc) {
    const T* const from = start.data + r * start.row_step;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < columns; ++i) c[i] = alpha * sums[i] + (start.data != nullptr ? from[i] : T(0));
  }
}

/// The products of some rows with one panel of `columns` columns.
template <class T>
void multiply_panel(const Gemm<T>& p, const Rows<T>& a, int64_t rows, const T* b, int64_t depth,
                    int64_t columns, Start<T> start, T* c) {
  TileProduct<T> product{.a = a.data,
                         .a_row = a.row_step,
                         .a_depth = a.depth_step,
                         .b = b,
                         .b_depth = panel_columns<T>,
                         .depth = depth,
                         .result = c,
                         .result_row = p.ldc,
                         .start = start.data,
                         .start_row = start.row_step};
  if (p.alpha == T(1) && columns == panel_columns<T>) return multiply_rows<T, 2>(product, rows);
  if (p.alpha == T(1) && columns == lanes<T>) return multiply_rows<T, 1>(product, rows);
  alignas(64) T sums[row_block * panel_columns<T>];
  product.result = sums;
  product.result_row = panel_columns<T>;
  product.start = nullptr;
  if (columns > lanes<T>)
    multiply_rows<T, 2>(product, rows);
  else
    multiply_rows<T, 1>(product, rows);
  write(sums, rows, columns, p.alpha, start, c, p.ldc);
}

}  // namespace

template <class T>
bool pays_panels(const Gemm<T>& p) {
  return p.m >= 8 && p.n >= lanes<T> && p.m * p.n * p.k >= 1 << 16;
}

template <class T>
ColumnPanels<T>::ColumnPanels(const Gemm<T>& p)
    : count_(ceil_div(p.n, panel_columns<T>)),
      k_(p.k),
      memory_(allocate(count_ * panel_columns<T> * k_ * static_cast<int64_t>(sizeof(T)))),
      data_(reinterpret_cast<T*>(memory_.get())) {}

template <class T>
void ColumnPanels<T>::pack(const Gemm<T>& p, int64_t first, int64_t panels) const {
  constexpr int64_t width = panel_columns<T>;
  const int64_t last = std::min(first + panels, count_), end = std::min(last * width, p.n);
  const auto panel_at = [&](int64_t column) { return data_ + column * k_; };
  if (p.transpose_b) {
    for (int64_t column = first * width; column < end; column += width)
      transpose_matrix(panel_at(column), width, p.b + column * p.ldb, p.ldb, std::min(width, end - column),
                       p.k);
  } else {
    // Row by row: neighbours in memory are read one after the other, which is several times as fast as panel
    // by panel where they come from memory.
    const int64_t full = end - end % width;
    for (int64_t d = 0; d < p.k; ++d) {
      const T* const row = p.b + d * p.ldb;
      for (int64_t column = first * width; column < full; column += width)
        std::copy_n(row + column, width, panel_at(column) + d * width);
      if (full < end) std::copy_n(row + full, end - full, panel_at(full) + d * width);
    }
  }
  if (const int64_t valid = end % width; valid > 0)
    for (int64_t d = 0; d < p.k; ++d)
      std::fill_n(panel_at(end - valid) + d * width + valid, width - valid, T(0));
}

template <class T>
void multiply_panels(const Gemm<T>& p, const T* b) {
  const auto memory = allocate(row_block * (depth_block + lanes<T>)*static_cast<int64_t>(sizeof(T)));
  T* const buffer = reinterpret_cast<T*>(memory.get());
  for (int64_t row = 0; row < p.m; row += row_block) {
    const int64_t rows = std::min(row_block, p.m - row);
    for (int64_t first = 0; first < p.k; first += depth_block) {
      const int64_t depth = std::min(depth_block, p.k - first);
      const Rows<T> a = rows_of(p, row, rows, first, depth, buffer);
      T* const c = p.c + row * p.ldc;
      Start<T> start{c, p.ldc};
      if (!p.accumulate && first == 0)
        start = {p.start == nullptr ? nullptr : p.start + row * p.start_row, p.start_row};
      for (int64_t column = 0; column < p.n; column += panel_columns<T>)
        multiply_panel(p, a, rows, b + column * p.k + first * panel_columns<T>, depth,
                       std::min(panel_columns<T>, p.n - column), start.from_column(column), c + column);
    }
  }
}

template bool pays_panels(const Gemm<float>&);
template bool pays_panels(const Gemm<double>&);
template class ColumnPanels<float>;
template class ColumnPanels<double>;
template void multiply_panels(const Gemm<float>&, const float*);
template void multiply_panels(const Gemm<double>&, const double*);

}  // namespace pleat::ops
