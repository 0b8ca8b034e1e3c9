// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/memory/allocate_array.h"
#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/matmul/gemm.h"
#include "pleat/ops/matmul/gemm_bfloat16_kernels.h"
#include "pleat/ops/matmul/tile_product.h"

/// Products of matrices on the CPU by tiles that are summed in registers (tile_product.h): op(B) is copied
/// into panels of a few columns once, which all rows of op(A) then pass. Goto and van de Geijn, "Anatomy of
/// High-Performance Matrix Multiplication" (2008), has the loops. One thread of a Zen 4, float32: 89 to 105
/// GFLOP/s from 128 rows, columns and depth on, where its peak is 114 to 117.

namespace pleat::ops {

/// Columns of a panel: two vectors, or what the kernels of bfloat16 take.
template <class T>
constexpr int64_t panel_columns = 2 * simd::lanes<T>;
template <>
inline constexpr int64_t panel_columns<BFloat16> = pair_columns;

/// So many rows of op(A) stay in the second-level cache beside the panels.
inline constexpr int64_t row_block = 128;

/// So much of the depth is summed at a time that a panel of it stays in the first-level cache.
inline constexpr int64_t depth_block = 256;

/// Part of op(A): element [row, d] lies at data[row * row_step + d * depth_step].
template <class T>
struct PanelRows {
  const T* data;
  int64_t row_step, depth_step;
};

/// Whether rows of op(A) are copied: several panels read several of them, or they are columns.
template <class T>
bool copies_rows(const Gemm<T>& p) {
  constexpr int64_t few_rows = 16;
  return p.transpose_a || (p.n > 2 * panel_columns<T> && p.m > few_rows);
}

/// Rows and depths from some on: where they lie, or copied to `buffer`, whose rows do not get into each
/// other's way in a cache.
template <class T>
PanelRows<T> panel_rows(const Gemm<T>& p, int64_t row, int64_t rows, int64_t first, int64_t depth,
                        T* buffer) {
  if (p.transpose_a) {
    const T* const from = p.a + first * p.lda + row;
    for (int64_t d = 0; d < depth; ++d) std::copy_n(from + d * p.lda, rows, buffer + d * row_block);
    return {buffer, 1, row_block};
  }
  const T* const from = p.a + row * p.lda + first;
  if (!copies_rows(p)) return {from, p.lda, 1};
  constexpr int64_t step = depth_block + simd::lanes<T>;
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * p.lda, depth, buffer + r * step);
  return {buffer, step, 1};
}

/// result = start + alpha a b of some rows and a panel of `columns` columns.
template <class T>
void multiply_panel(const TileProduct<T>& p, int64_t rows, int64_t columns, T alpha) {
  if (alpha == T(1) && columns == panel_columns<T>) return multiply_rows<T, 2>(p, rows);
  if (alpha == T(1) && columns == simd::lanes<T>) return multiply_rows<T, 1>(p, rows);
  alignas(64) T sums[row_block * panel_columns<T>];
  TileProduct<T> product = p;
  product.result = sums;
  product.result_row = panel_columns<T>;
  product.start = nullptr;
  if (columns > simd::lanes<T>)
    multiply_rows<T, 2>(product, rows);
  else
    multiply_rows<T, 1>(product, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const T* const sum = sums + r * panel_columns<T>;
    const T* const start = p.start + r * p.start_row;
    T* const c = p.result + r * p.result_row;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < columns; ++i) c[i] = alpha * sum[i] + (p.start != nullptr ? start[i] : T(0));
  }
}

/// A few rows leave registers for several panels at a time, without which every sum would wait for its last
/// addition: so many panels, 1 where one has sums enough.
constexpr int64_t panels_for_rows(int64_t rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
/// result = start + a b of so few rows and as many panels as they take.
template <class T>
void multiply_few_rows(const TileProduct<T>& p, int64_t rows) {
  if (rows == 1) return multiply_tile<T, 1, 2, panels_for_rows(1)>(p);
  if (rows == 2) return multiply_tile<T, 2, 2, panels_for_rows(2)>(p);
  multiply_tile<T, 3, 2, panels_for_rows(3)>(p);
}

/// Whether there are so many rows and columns that copying op(B) pays.
template <class T>
bool pays_panels(const Gemm<T>& p) {
  return p.m >= 8 && p.n >= simd::lanes<T> && p.m * p.n * p.k >= 1 << 16;
}

/// op(B) as [panel][k][column of the panel], with zeros behind the last column. Of bfloat16, which is packed
/// in advance alone, as [panel][pair of k][column], the last panel no wider than its columns, rounded up
/// to 16.
template <class T>
class ColumnPanels {
 public:
  static constexpr bool has_pairs = std::is_same_v<T, BFloat16>;
  using Element = std::conditional_t<has_pairs, uint32_t, T>;

  /// Room for the panels of a product.
  explicit ColumnPanels(const Gemm<T>& p)
      : count_(ceil_div(p.n, panel_columns<T>)),
        k_(depth_of(p)),
        data_(allocate_array<Element>(count_ * panel_columns<T> * k_)) {}
  /// Those that are kept in `shared`; `pack` fills panels like these where they are not there yet.
  template <class Pack>
  ColumnPanels(const Gemm<T>& p, SharedBlocks& shared, const Pack& pack)
      : count_(ceil_div(p.n, panel_columns<T>)), k_(depth_of(p)) {
    const int64_t elements = checked_multiply(count_ * panel_columns<T>, k_, "pack");
    const auto block = shared.prepared(elements * static_cast<int64_t>(sizeof(Element)), [&] {
      const ColumnPanels made(p);
      pack(made);
      return std::shared_ptr<std::byte>(made.data_, reinterpret_cast<std::byte*>(made.data_.get()));
    });
    data_ = {block, reinterpret_cast<Element*>(block.get())};
  }
  int64_t count() const { return count_; }
  /// From a column on, the first one of a panel.
  Element* from(int64_t column) const { return data_.get() + column * k_; }
  /// Copies those from `first` on, `panels` of them or as many as there are.
  void pack(const Gemm<T>& p, int64_t first, int64_t panels) const { pack_part(p, first, panels, 0, p.k); }
  /// The part of them from some depth on.
  void pack_part(const Gemm<T>& p, int64_t first, int64_t panels, int64_t from_depth, int64_t depth) const {
    constexpr int64_t width = panel_columns<T>;
    const int64_t last = std::min(first + panels, count_), end = std::min(last * width, p.n);
    const T* const b = p.b + (p.transpose_b ? from_depth : from_depth * p.ldb);
    const auto to = [&](int64_t column) { return from(column) + from_depth * width; };
    if (p.transpose_b) {
      for (int64_t column = first * width; column < end; column += width)
        transpose_matrix(to(column), width, b + column * p.ldb, p.ldb, std::min(width, end - column), depth);
    } else {
      // Row by row: neighbours in memory are read one after the other, which is several times as fast as
      // panel by panel where they come from memory.
      const int64_t full = end - end % width;
      for (int64_t d = 0; d < depth; ++d) {
        const T* const row = b + d * p.ldb;
        for (int64_t column = first * width; column < full; column += width)
          for (int64_t i = 0; i < width; i += simd::lanes<T>)
            simd::store(to(column) + d * width + i, simd::load(row + column + i));
        if (full < end) std::copy_n(row + full, end - full, to(full) + d * width);
      }
    }
    if (const int64_t valid = end % width; valid > 0)
      for (int64_t d = 0; d < depth; ++d)
        std::fill_n(to(end - valid) + d * width + valid, width - valid, T(0));
  }

 private:
  static int64_t depth_of(const Gemm<T>& p) { return has_pairs ? ceil_div(p.k, int64_t{2}) : p.k; }

  int64_t count_, k_;
  std::shared_ptr<Element> data_;
};
template <>
void ColumnPanels<BFloat16>::pack(const Gemm<BFloat16>& p, int64_t first, int64_t panels) const;

/// What a product will read of op(B), in the first block of rows, and of op(A) where these lie side by side.
template <class T>
std::array<UpcomingRows<T>, 2> upcoming_rows(const Gemm<T>& next, int64_t row, int64_t rows) {
  constexpr auto line = static_cast<int64_t>(64 / sizeof(T));
  const int64_t of_b = next.transpose_b || row > 0 ? 0 : ceil_div(next.n, line);
  const int64_t of_a = next.transpose_a ? ceil_div(rows, line) : 0;
  return {{{next.b, next.ldb, of_b}, {next.a + row, next.lda, of_a}}};
}

/// The product, its op(B) in panels: `b` begins with that of the first column. Reads nothing of p.b. What
/// `next` will read is fetched.
template <class T>
void multiply_panels(const Gemm<T>& p, const T* b, const Gemm<T>* next = nullptr) {
  const auto buffer =
      copies_rows(p) ? allocate_array<T>(row_block * (depth_block + simd::lanes<T>)) : nullptr;
  for (int64_t row = 0; row < p.m; row += row_block) {
    const int64_t rows = std::min(row_block, p.m - row);
    auto upcoming = next != nullptr ? upcoming_rows(*next, row, rows) : std::array<UpcomingRows<T>, 2>{};
    for (int64_t first = 0; first < p.k; first += depth_block) {
      const int64_t depth = std::min(depth_block, p.k - first);
      const PanelRows<T> a = panel_rows(p, row, rows, first, depth, buffer.get());
      T* const c = p.c + row * p.ldc;
      const bool adds_to_c = p.accumulate || first > 0;
      const T* const start = adds_to_c ? c : p.start == nullptr ? nullptr : p.start + row * p.start_row;
      const int64_t together = p.alpha == T(1) ? panels_for_rows(rows) : 1;
      for (int64_t column = 0, columns = 0; column < p.n; column += columns) {
        const TileProduct<T> product{.a = a.data,
                                     .a_row = a.row_step,
                                     .a_depth = a.depth_step,
                                     .b = b + column * p.k + first * panel_columns<T>,
                                     .b_depth = panel_columns<T>,
                                     .depth = depth,
                                     .result = c + column,
                                     .result_row = p.ldc,
                                     .start = start == nullptr ? nullptr : start + column,
                                     .start_row = adds_to_c ? p.ldc : p.start_row,
                                     .b_panel = panel_columns<T> * p.k,
                                     .upcoming = upcoming};
        columns = std::min(together * panel_columns<T>, p.n - column);
        if (together > 1 && columns == together * panel_columns<T>) {
          multiply_few_rows(product, rows);
        } else {
          columns = std::min(panel_columns<T>, columns);
          multiply_panel<T>(product, rows, columns, p.alpha);
        }
      }
    }
  }
}

/// The product, whose op(B) is in panels already, without packing: in the calling thread, and on the pool.
/// The serial one into float begins with column number `column` of the panels, the first of one.
void gemm_serial(const Gemm<BFloat16>& product, const ColumnPanels<BFloat16>& panels);
void gemm_serial(const Gemm<BFloat16, float>& product, const ColumnPanels<BFloat16>& panels, int64_t column);
void gemm(const Gemm<float>& product, const ColumnPanels<float>& panels);
void gemm(const Gemm<double>& product, const ColumnPanels<double>& panels);
void gemm(const Gemm<BFloat16>& product, const ColumnPanels<BFloat16>& panels);

}  // namespace pleat::ops
