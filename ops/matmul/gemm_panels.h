// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>

#include "pleat/core/base/simd.h"
#include "pleat/ops/matmul/gemm.h"

/// Products of matrices on the CPU by tiles that are summed in registers (tile_product.h): op(B) is copied
/// into panels of a few columns once, which all rows of op(A) then pass. Goto and van de Geijn, "Anatomy of
/// High-Performance Matrix Multiplication" (2008), has the loops. One thread of a Zen 4, float32: 89 to 105
/// GFLOP/s from 128 rows, columns and depth on, where its peak is 114 to 117.

namespace pleat::ops {

/// Columns of a panel: two vectors.
template <class T>
constexpr int64_t panel_columns = 2 * simd::lanes<T>;

/// So many rows of op(A) stay in the second-level cache beside the panels.
inline constexpr int64_t row_block = 128;

/// Whether there are so many rows and columns that copying op(B) pays.
template <class T>
bool pays_panels(const Gemm<T>& p);

/// op(B) as [panel][k][column of the panel], with zeros behind the last column.
template <class T>
class ColumnPanels {
 public:
  /// Room for the panels of a product.
  explicit ColumnPanels(const Gemm<T>& p);
  int64_t count() const { return count_; }
  /// Copies those from `first` on, `panels` of them or as many as there are.
  void pack(const Gemm<T>& p, int64_t first, int64_t panels) const;
  /// From a column on, the first one of a panel.
  const T* from(int64_t column) const { return data_ + column * k_; }

 private:
  int64_t count_, k_;
  std::shared_ptr<std::byte> memory_;
  T* data_;
};

/// The product, its op(B) in panels: `b` begins with that of the first column. Reads nothing of p.b.
template <class T>
void multiply_panels(const Gemm<T>& p, const T* b);

}  // namespace pleat::ops
