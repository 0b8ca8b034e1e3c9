#include <algorithm>

#include "pleat/core/base/processor.h"
#include "pleat/ops/matmul/gemm_bfloat16_kernels.h"
#include "pleat/ops/matmul/gemm_blocks.h"
#include "pleat/ops/matmul/gemm_panels.h"

namespace pleat::ops {
namespace {

/// What of a product is packed at a time, so that it stays in the second-level cache: rows where they are
/// packed, and k.
constexpr int64_t most_rows = 256;
constexpr int64_t most_depth = 1024;

const BFloat16Kernels* find_kernels() {
  if (processor_has(Instructions::avx512_bf16)) return bfloat16_kernels_avx512();
  if (processor_has(Instructions::arm_bf16)) return bfloat16_kernels_arm();
  return nullptr;
}

const BFloat16Kernels* kernels() {
  static const BFloat16Kernels* const found = find_kernels();
  return found;
}

void multiply_panel(const BFloat16Panel& panel, const float*) { kernels()->multiply_to_float(panel); }
void multiply_panel(const BFloat16Panel& panel, const BFloat16*) { kernels()->multiply_to_bfloat16(panel); }

/// Packs the terms of an operand one below the other.
void pack(BFloat16Packing terms, int64_t count, int64_t step) {
  const auto kernel = kernels()->pack;
  for (int64_t term = 0; term < count; ++term) {
    kernel(terms);
    terms.x += step;
    terms.pairs += ceil_div(terms.k, int64_t{2}) * terms.width;
  }
}

/// Columns of the right-hand operand that were packed in advance, from some column and pair on.
struct Packed {
  const ColumnPanels<BFloat16>* panels = nullptr;  ///< null: they are not
  int64_t column = 0, pair = 0;
};

/// As many columns as a panel has.
BFloat16Packing packing_of(const BFloat16* b, int64_t ldb, bool transposed, int64_t k, int64_t columns,
                           uint32_t* pairs, int64_t ahead = 0) {
  return {b, ldb, transposed, columns, k, pairs, round_up(columns, int64_t{16}), ahead * ldb};
}

/// Rows of a that are read where they lie, or few enough to be packed; k or the terms few enough, too.
/// `ahead`: how far along k the next part begins.
template <class Out>
void multiply_rows(const Gemm<BFloat16, Out>& p, bool packs_a, uint32_t* a_pairs, uint32_t* b_pairs,
                   const Packed& packed, int64_t ahead) {
  constexpr int64_t bytes = sizeof(uint32_t);
  BFloat16Panel panel{.m = p.m,
                      .n = 0,
                      .pairs = p.terms * ceil_div(p.k, int64_t{2}),
                      .a = p.a,
                      .a_row = p.lda * static_cast<int64_t>(sizeof(BFloat16)),
                      .a_pair = bytes,
                      .b = b_pairs,
                      .c = nullptr,
                      .ldc = p.ldc,
                      .accumulate = p.accumulate,
                      .alpha = p.alpha};
  if (packs_a) {
    const int64_t width = round_up(p.m, int64_t{16});
    pack({p.a, p.lda, !p.transpose_a, p.m, p.k, a_pairs, width, ahead * p.lda}, p.terms, p.a_term_step);
    panel.a = a_pairs;
    panel.a_row = bytes;
    panel.a_pair = width * bytes;
  }
  for (int64_t first = 0; first < p.n; first += pair_columns) {
    panel.n = std::min(pair_columns, p.n - first);
    panel.c = p.c + first;
    if (packed.panels != nullptr) {
      panel.b = packed.panels->from(packed.column + first) + packed.pair * round_up(panel.n, int64_t{16});
    } else {
      const BFloat16* const b = p.b + (p.transpose_b ? first * p.ldb : first);
      pack(packing_of(b, p.ldb, p.transpose_b, p.k, panel.n, b_pairs, ahead), p.terms, p.b_term_step);
    }
    multiply_panel(panel, p.c);
  }
}

template <class Out>
void multiply(const Gemm<BFloat16, Out>& p, const Packed& packed = {}) {
  if (p.m == 0 || p.n == 0) return;
  if (p.terms > 1 && (p.k == 0 || p.k > most_depth)) {
    for (int64_t i = 0; i < p.terms; ++i) multiply(term_of(p, i));
    return;
  }
  // Rows of whole pairs are read in place.
  const bool packs_a = p.transpose_a || p.terms > 1 || p.k % 2 != 0;
  const int64_t depth = p.terms > 1 ? most_depth / p.k * p.k : most_depth;
  const int64_t parts = std::max<int64_t>(1, ceil_div(p.terms * p.k, depth));
  const int64_t rows = std::min(p.m, most_rows);
  // Terms of odd k have a pair of one element each.
  const int64_t most_pairs = std::min(ceil_div(p.k, int64_t{2}) * p.terms, depth);
  const bool has_sums = parts > 1 && !std::is_same_v<Out, float>;
  const int64_t a_size = packs_a ? most_pairs * round_up(rows, int64_t{16}) : 0;
  const int64_t b_size = packed.panels != nullptr ? 0 : most_pairs * pair_columns;
  const int64_t sums_size = has_sums ? rows * p.n : 0;
  const auto memory = allocate_array<uint32_t>(a_size + b_size + sums_size);
  uint32_t* const b_pairs = memory.get();
  uint32_t* const a_pairs = b_pairs + b_size;
  float* const sums = reinterpret_cast<float*>(a_pairs + a_size);
  for (int64_t first = 0; first < p.m; first += rows) {
    const Gemm<BFloat16, Out> block = block_of(p, first, rows, 0, p.n);
    const auto add_parts = [&](auto sum) {
      for (int64_t part = 0; part < parts; ++part) {
        multiply_rows(part_of(sum, depth, part), packs_a, a_pairs, b_pairs,
                      {packed.panels, packed.column, part * depth / 2}, parts > 1 ? depth : 0);
        sum.accumulate = true;
      }
    };
    if (!has_sums) {
      add_parts(block);
      continue;
    }
    auto sum = with_result(block, sums, p.n);
    sum.accumulate = false;
    add_parts(sum);
    for (int64_t row = 0; row < block.m; ++row)
      store_sums(sums + row * p.n, p.n, p.accumulate, block.c + row * p.ldc);
  }
}

}  // namespace

bool multiplies_bfloat16() { return kernels() != nullptr; }

template <>
void ColumnPanels<BFloat16>::pack(const Gemm<BFloat16>& p, int64_t first, int64_t panels) const {
  for (int64_t column = first * pair_columns; column < std::min((first + panels) * pair_columns, p.n);
       column += pair_columns) {
    const BFloat16Packing packing =
        packing_of(p.b + (p.transpose_b ? column * p.ldb : column), p.ldb, p.transpose_b, p.k,
                   std::min(pair_columns, p.n - column), from(column));
    kernels()->pack(packing);
    // What is behind a narrow panel is a part of the block, too, which is compared and saved.
    std::fill(from(column) + k_ * packing.width, from(column) + k_ * pair_columns, 0U);
  }
}

void gemm_serial(const Gemm<BFloat16>& product) { multiply(started(product)); }
void gemm_serial(const Gemm<BFloat16, float>& product) { multiply(started(product)); }
void gemm(const Gemm<BFloat16>& product) { gemm_by_blocks(product); }
void gemm(const Gemm<BFloat16, float>& product) { gemm_by_blocks(product); }
void gemm_serial(const Gemm<BFloat16>& product, const ColumnPanels<BFloat16>& panels) {
  multiply(started(product), {&panels});
}
void gemm_serial(const Gemm<BFloat16, float>& product, const ColumnPanels<BFloat16>& panels, int64_t column) {
  multiply(started(product), {&panels, column});
}
void gemm(const Gemm<BFloat16>& product, const ColumnPanels<BFloat16>& panels) {
  constexpr LeastBlock least{
      .work = 1 << 21, .rows = 32, .columns = pair_columns, .column_step = pair_columns};
  multiply_blocks_of_packed(product, least, [&](const Gemm<BFloat16>& part, int64_t column) {
    multiply(started(part), {&panels, column});
  });
}

}  // namespace pleat::ops
