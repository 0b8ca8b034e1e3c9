// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocate_array.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/matmul/gemm.h"

/// How `gemm` shares a product of any type among threads: by blocks that `gemm_serial` computes.

namespace pleat::ops {

/// The size of a block of C, and how much of k it sums.
struct Blocking {
  int64_t rows, columns, depth;
};

/// The least a block should be: so much work that it outweighs the handing out; so long edges that the copies
/// of operands, made again for each block, take little of the time.
struct LeastBlock {
  double work;  ///< multiplications
  int64_t rows, columns;
  int64_t column_step;  ///< what kernels hold in registers
};

/// At most 32 blocks.
inline Blocking choose_blocking(int64_t m, int64_t n, int64_t k, const LeastBlock& least) {
  constexpr int64_t most_blocks = 32;
  constexpr int64_t least_depth = 2048;  // below, adding up the parts costs too much
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto wanted = static_cast<int64_t>(std::clamp(work / least.work, 1.0, double{most_blocks}));
  Blocking block{m, n, k};
  const auto tiles = [&] { return ceil_div(m, block.rows) * ceil_div(n, block.columns); };
  while (tiles() < wanted) {
    const bool rows_can = block.rows > least.rows;
    const bool columns_can = block.columns > least.columns;
    if (!rows_can && !columns_can) break;
    if (rows_can && (block.rows >= block.columns || !columns_can))
      block.rows = round_up(ceil_div(block.rows, 2), 16);
    else
      block.columns = round_up(ceil_div(block.columns, 2), least.column_step);
  }
  const int64_t parts = std::min(wanted / tiles(), k / least_depth);
  if (parts > 1) block.depth = round_up(ceil_div(k, parts), 64);
  return block;
}

/// The same product from 0, written elsewhere and in another type.
template <class T, class Out, class Other>
Gemm<T, Other> with_result(const Gemm<T, Out>& p, Other* c, int64_t ldc) {
  return {p.m,           p.n, p.k, p.a,          p.lda,   p.transpose_a, p.b,           p.ldb,
          p.transpose_b, c,   ldc, p.accumulate, p.alpha, p.terms,       p.a_term_step, p.b_term_step};
}

/// c = sums (+ c), rounded to the type of c.
template <class Sum, class Out>
void store_sums(const Sum* sums, int64_t n, bool accumulate, Out* c) {
  if (accumulate)
    for (int64_t i = 0; i < n; ++i) c[i] = convert<Out>(convert<Sum>(c[i]) + sums[i]);
  else
    for (int64_t i = 0; i < n; ++i) c[i] = convert<Out>(sums[i]);
}

/// The part of `p` that lies in one block of C.
template <class T, class Out>
Gemm<T, Out> tile_of(const Gemm<T, Out>& p, const Blocking& block, int64_t tile) {
  const int64_t across = ceil_div(p.n, block.columns);
  return block_of(p, tile / across * block.rows, block.rows, tile % across * block.columns, block.columns);
}

/// The part of `p` that sums `depth` products from part * depth, where several terms are parts of k, too.
template <class T, class Out>
Gemm<T, Out> part_of(const Gemm<T, Out>& p, int64_t depth, int64_t part) {
  Gemm<T, Out> product = p;
  if (p.terms == 1) {
    const int64_t first = part * depth;
    product.k = std::min(depth, p.k - first);
    product.a += p.transpose_a ? first * p.lda : first;
    product.b += p.transpose_b ? first : first * p.ldb;
  } else {
    const int64_t first = part * (depth / p.k);
    product.terms = std::min(depth / p.k, p.terms - first);
    product.a += first * p.a_term_step;
    product.b += first * p.b_term_step;
  }
  return product;
}

/// Sums the parts of k into matrices of their own, then adds these up in order.
template <class T, class Out>
void multiply_by_depth(const Gemm<T, Out>& p, const Blocking& block, int64_t tiles, int64_t parts) {
  using Sum = typename Gemm<T, Out>::Scale;
  const int64_t elements = p.m * p.n;
  const auto memory = allocate_array<Sum>(parts * elements);
  Sum* const sums = memory.get();
  parallel_chunks(parts * tiles, [&](int64_t chunk) {
    const int64_t part = chunk / tiles;
    Gemm<T, Sum> product = with_result(part_of(p, block.depth, part), sums + part * elements, p.n);
    product.accumulate = false;
    gemm_serial(tile_of(product, block, chunk % tiles));
  });
  parallel_for(0, p.m, std::max<int64_t>(1, 16384 / (parts * p.n)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      Sum* const total = sums + row * p.n;
      for (int64_t part = 1; part < parts; ++part) {
        const Sum* const sum = total + part * elements;
        for (int64_t i = 0; i < p.n; ++i) total[i] += sum[i];
      }
      store_sums(total, p.n, p.accumulate, p.c + row * p.ldc);
    }
  });
}

/// Does what is to be done with a block of C, which is complete.
template <class T, class Out>
void finish_rows(const Gemm<T, Out>& p) {
  if (p.finish == nullptr) return;
  for (int64_t row = 0; row < p.m; ++row) p.finish->run(p.c + row * p.ldc, p.n);
}

/// The same on the pool, of all of C.
template <class T, class Out>
void finish_all(const Gemm<T, Out>& p) {
  if (p.finish == nullptr) return;
  parallel_for(0, p.m, std::max<int64_t>(1, 16384 / p.n),
               [&](int64_t begin, int64_t end) { finish_rows(block_of(p, begin, end - begin, 0, p.n)); });
}

/// Blocks of C that are products of their own.
template <class T, class Out>
struct SeparateBlocks {
  static constexpr LeastBlock least{.work = 1 << 21, .rows = 128, .columns = 192, .column_step = 48};
  void operator()(const Gemm<T, Out>& p, const Blocking& block, int64_t tiles) const {
    parallel_chunks(tiles, [&](int64_t tile) {
      const Gemm<T, Out> part = tile_of(p, block, tile);
      gemm_serial(part);
      finish_rows(part);
    });
  }
};

/// The product, its op(B) in panels, on the pool: `multiply` computes blocks of C from some column on.
template <class T, class Multiply>
void multiply_blocks(const Gemm<T>& p, const Blocking& block, const Multiply& multiply) {
  const int64_t across = ceil_div(p.n, block.columns);
  parallel_chunks(ceil_div(p.m, block.rows) * across, [&](int64_t tile) {
    const Gemm<T> part = tile_of(p, block, tile);
    multiply(part, tile % across * block.columns);
    finish_rows(part);
  });
}

/// The same of panels that were packed in advance. A few rows take as long as the panels take to come from
/// memory, which threads share as they do products.
template <class T, class Multiply>
void multiply_blocks_of_packed(const Gemm<T>& p, const LeastBlock& least, const Multiply& multiply) {
  if (p.m == 0 || p.n == 0) return;
  constexpr int64_t rows_in_that_time = 8;
  Blocking block = choose_blocking(std::max(p.m, rows_in_that_time), p.n, p.k, least);
  block.rows = std::min(block.rows, p.m);
  multiply_blocks(p, block, multiply);
}

/// The product on the pool, as gemm.h says. `blocks` computes C block by block where k is not cut.
template <class T, class Out, class Blocks = SeparateBlocks<T, Out>>
void gemm_by_blocks(const Gemm<T, Out>& p, const Blocks& blocks = {}) {
  if (p.m == 0 || p.n == 0) return;
  const int64_t depth = p.terms * p.k;
  Blocking block = choose_blocking(p.m, p.n, depth, Blocks::least);
  if (p.terms > 1 && p.k > 0) {
    if (block.depth < p.k) {  // a few terms of large k are products of their own, each on the pool
      for (int64_t i = 0; i < p.terms; ++i) gemm_by_blocks(term_of(p, i), blocks);
      return;
    }
    block.depth -= block.depth % p.k;
  }
  const int64_t tiles = ceil_div(p.m, block.rows) * ceil_div(p.n, block.columns);
  const int64_t parts = depth == 0 ? 1 : ceil_div(depth, block.depth);
  if (parts == 1 && tiles > 1) return blocks(p, block, tiles);
  if (parts > 1)
    multiply_by_depth(started(p), block, tiles, parts);
  else
    gemm_serial(p);
  finish_all(p);
}

}  // namespace pleat::ops
