#include "pleat/ops/matmul/gemm.h"

#include <algorithm>
#include <cmath>

// g++ 12 takes the undefined halves inside its own AVX-512 intrinsics for uninitialised variables.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Core>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/matmul/gemm_panels.h"

namespace pleat::ops {
namespace {

template <class T, int Order>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;

/// A row-major matrix, or (transposed) the same memory read as column-major.
template <class T, int Order>
auto map(const T* data, int64_t rows, int64_t columns, int64_t leading) {
  return Eigen::Map<const Matrix<T, Order>, 0, Eigen::OuterStride<>>(data, rows, columns,
                                                                     Eigen::OuterStride<>(leading));
}

template <int OrderA, int OrderB, class T>
void multiply(const Gemm<T>& p) {
  const auto a = map<T, OrderA>(p.a, p.m, p.k, p.lda);
  const auto b = map<T, OrderB>(p.b, p.k, p.n, p.ldb);
  Eigen::Map<Matrix<T, Eigen::RowMajor>, 0, Eigen::OuterStride<>> c(p.c, p.m, p.n,
                                                                    Eigen::OuterStride<>(p.ldc));
  if (p.accumulate)
    c.noalias() += p.alpha * a * b;
  else
    c.noalias() = p.alpha * a * b;
}

/// The product of a row and a column that are plain arrays, which Eigen takes for matrices of any strides.
template <class T>
void multiply_vectors(const Gemm<T>& p) {
  using Vector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>;
  constexpr int64_t block = 4096;  // summed in T
  double sum = 0;
  for (int64_t i = 0; i < p.k; i += block) {
    const int64_t n = std::min(block, p.k - i);
    sum += static_cast<double>(Vector(p.a + i, n).dot(Vector(p.b + i, n)));
  }
  *p.c = (p.accumulate ? *p.c : T(0)) + p.alpha * static_cast<T>(sum);
}

template <class T>
void multiply_one(const Gemm<T>& p) {
  if (p.m == 1 && p.n == 1 && (!p.transpose_a || p.lda == 1) && (p.transpose_b || p.ldb == 1))
    return multiply_vectors(p);
  if (pays_panels(p)) {
    const ColumnPanels<T> panels(p);
    for (int64_t panel = 0; panel < panels.count(); ++panel) panels.pack(p, panel);
    return multiply_panels(p, panels.from(0));
  }
  constexpr int rows = Eigen::RowMajor;
  constexpr int columns = Eigen::ColMajor;
  if (p.transpose_a && p.transpose_b)
    multiply<columns, columns>(p);
  else if (p.transpose_a)
    multiply<columns, rows>(p);
  else if (p.transpose_b)
    multiply<rows, columns>(p);
  else
    multiply<rows, rows>(p);
}

/// One operand of the terms of a product. Those of [size, k] stand beside one another in a matrix of several
/// terms, those of [k, size] below one another.
template <class T>
struct Operand {
  const T* data;
  int64_t size, k;
  bool rows_of_k;  // [size, k]
  int64_t leading, term_step;

  bool is_joined() const { return term_step == (rows_of_k ? k : k * leading); }
  int64_t joined_leading(int64_t terms) const {
    if (is_joined()) return leading;
    return rows_of_k ? terms * k : size;
  }
  /// The matrix of `terms` terms from `first`: where they lie, or copied to `buffer`.
  const T* joined(int64_t first, int64_t terms, T* buffer) const {
    const T* const from = data + first * term_step;
    if (is_joined()) return from;
    const int64_t rows = rows_of_k ? size : k;
    const int64_t columns = rows_of_k ? k : size;
    const int64_t row_step = rows_of_k ? terms * k : size;
    const int64_t part_step = rows_of_k ? k : k * size;
    for (int64_t term = 0; term < terms; ++term)
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(from + term * term_step + row * leading, columns,
                    buffer + term * part_step + row * row_step);
    return buffer;
  }
};

/// Terms of small k are joined: each pass over C should add up many products.
template <class T>
void multiply_terms(const Gemm<T>& p) {
  constexpr int64_t joined_depth = 256;
  const Operand<T> a{p.a, p.m, p.k, !p.transpose_a, p.lda, p.a_term_step};
  const Operand<T> b{p.b, p.n, p.k, p.transpose_b, p.ldb, p.b_term_step};
  const int64_t most = std::clamp<int64_t>(joined_depth / std::max<int64_t>(p.k, 1), 1, p.terms);
  if (most == 1) {
    for (int64_t i = 0; i < p.terms; ++i) multiply_one(term_of(p, i));
    return;
  }
  const auto memory = allocate((p.m + p.n) * p.k * most * static_cast<int64_t>(sizeof(T)));
  T* const buffer = reinterpret_cast<T*>(memory.get());
  Gemm<T> sum = p;
  for (int64_t first = 0; first < p.terms; first += most) {
    const int64_t terms = std::min(most, p.terms - first);
    sum.k = terms * p.k;
    sum.a = a.joined(first, terms, buffer);
    sum.lda = a.joined_leading(terms);
    sum.b = b.joined(first, terms, buffer + p.m * p.k * most);
    sum.ldb = b.joined_leading(terms);
    multiply_one(sum);
    sum.accumulate = true;
  }
}

template <class T>
void multiply(const Gemm<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.terms == 1)
    multiply_one(p);
  else
    multiply_terms(p);
}

/// The size of a block of C, and how much of k it sums.
struct Blocking {
  int64_t rows, columns, depth;
};

/// Blocks of at least a million multiplications, which outweigh the handing out of work, at most 32; edges for
/// which copying op(A), done again for each block, is little beside the products.
Blocking choose_blocking(int64_t m, int64_t n, int64_t k) {
  constexpr double work_of_block = 1 << 20;
  constexpr int64_t most_blocks = 32;
  constexpr int64_t least_rows = 32;
  constexpr int64_t least_columns = 64;
  constexpr int64_t least_depth = 2048;  // below, adding up the parts costs too much
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto wanted = static_cast<int64_t>(std::clamp(work / work_of_block, 1.0, double{most_blocks}));
  Blocking block{m, n, k};
  const auto tiles = [&] { return ceil_div(m, block.rows) * ceil_div(n, block.columns); };
  while (tiles() < wanted) {
    const bool rows_can = block.rows > least_rows;
    const bool columns_can = block.columns > least_columns;
    if (!rows_can && !columns_can) break;
    // Multiples of what the kernels hold in registers.
    if (rows_can && (block.rows >= block.columns || !columns_can))
      block.rows = round_up(ceil_div(block.rows, 2), 16);
    else
      block.columns = round_up(ceil_div(block.columns, 2), panel_columns<float>);
  }
  const int64_t parts = std::min(wanted / tiles(), k / least_depth);
  if (parts > 1) block.depth = round_up(ceil_div(k, parts), 64);
  return block;
}

/// The part of `p` that lies in one block of C.
template <class T>
Gemm<T> tile_of(const Gemm<T>& p, const Blocking& block, int64_t tile) {
  const int64_t across = ceil_div(p.n, block.columns);
  const int64_t row = tile / across * block.rows;
  const int64_t column = tile % across * block.columns;
  Gemm<T> part = p;
  part.m = std::min(block.rows, p.m - row);
  part.n = std::min(block.columns, p.n - column);
  part.a += p.transpose_a ? row : row * p.lda;
  part.b += p.transpose_b ? column * p.ldb : column;
  part.c += row * p.ldc + column;
  return part;
}

/// The part of `p` that sums `depth` products from part * depth, where several terms are parts of k, too.
template <class T>
Gemm<T> part_of(const Gemm<T>& p, int64_t depth, int64_t part) {
  Gemm<T> product = p;
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
template <class T>
void multiply_by_depth(const Gemm<T>& p, const Blocking& block, int64_t tiles, int64_t parts) {
  const int64_t elements = p.m * p.n;
  const auto memory = allocate(parts * elements * static_cast<int64_t>(sizeof(T)));
  T* const sums = reinterpret_cast<T*>(memory.get());
  parallel_chunks(parts * tiles, [&](int64_t chunk) {
    const int64_t part = chunk / tiles;
    Gemm<T> product = part_of(p, block.depth, part);
    product.c = sums + part * elements;
    product.ldc = p.n;
    product.accumulate = false;
    multiply(tile_of(product, block, chunk % tiles));
  });
  parallel_for(0, p.m, std::max<int64_t>(1, 16384 / (parts * p.n)), [&](int64_t begin, int64_t end) {
    using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
    for (int64_t row = begin; row < end; ++row) {
      Row total(sums + row * p.n, p.n);
      for (int64_t part = 1; part < parts; ++part) total += Row(sums + part * elements + row * p.n, p.n);
      Row c(p.c + row * p.ldc, p.n);
      if (p.accumulate)
        c += total;
      else
        c = total;
    }
  });
}

/// Blocks of C that share the panels of op(B), in stripes of columns whose panels are no large memory.
template <class T>
void multiply_by_panels(const Gemm<T>& p, const Blocking& block) {
  constexpr int64_t most_bytes = 16 << 20;
  const int64_t column_bytes = block.columns * p.k * static_cast<int64_t>(sizeof(T));
  const int64_t columns = block.columns * std::max<int64_t>(1, most_bytes / column_bytes);
  for (int64_t first = 0; first < p.n; first += columns) {
    Gemm<T> stripe = p;
    stripe.n = std::min(columns, p.n - first);
    stripe.b += p.transpose_b ? first * p.ldb : first;
    stripe.c += first;
    const ColumnPanels<T> panels(stripe);
    parallel_chunks(panels.count(), [&](int64_t panel) { panels.pack(stripe, panel); });
    const int64_t across = ceil_div(stripe.n, block.columns);
    parallel_chunks(ceil_div(p.m, block.rows) * across, [&](int64_t tile) {
      multiply_panels(tile_of(stripe, block, tile), panels.from(tile % across * block.columns));
    });
  }
}

template <class T>
void multiply_parallel(const Gemm<T>& p);

/// A few terms of large k are products of their own, each on the pool.
template <class T>
void multiply_term_by_term(const Gemm<T>& p) {
  for (int64_t i = 0; i < p.terms; ++i) multiply_parallel(term_of(p, i));
}

template <class T>
void multiply_parallel(const Gemm<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  const int64_t depth = p.terms * p.k;
  Blocking block = choose_blocking(p.m, p.n, depth);
  if (p.terms > 1 && p.k > 0) {
    if (block.depth < p.k) return multiply_term_by_term(p);
    block.depth -= block.depth % p.k;
  }
  const int64_t tiles = ceil_div(p.m, block.rows) * ceil_div(p.n, block.columns);
  const int64_t parts = depth == 0 ? 1 : ceil_div(depth, block.depth);
  if (parts > 1)
    multiply_by_depth(p, block, tiles, parts);
  else if (tiles == 1)
    multiply(p);
  else if (p.terms == 1 && pays_panels(p))
    multiply_by_panels(p, block);
  else
    parallel_chunks(tiles, [&](int64_t tile) { multiply(tile_of(p, block, tile)); });
}

}  // namespace

void gemm_serial(const Gemm<float>& product) { multiply(product); }
void gemm_serial(const Gemm<double>& product) { multiply(product); }
void gemm(const Gemm<float>& product) { multiply_parallel(product); }
void gemm(const Gemm<double>& product) { multiply_parallel(product); }

}  // namespace pleat::ops
