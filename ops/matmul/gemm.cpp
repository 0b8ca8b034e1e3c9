#include "pleat/ops/matmul/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

// g++ 12 takes the undefined halves inside its own AVX-512 intrinsics for uninitialised variables.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Core>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/memory/allocate_array.h"
#include "pleat/ops/matmul/gemm_blocks.h"
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

/// Few result rows of `n` elements each, or, transposed, as few columns.
struct FewRows {
  int64_t rows, n;
  int64_t weight_row, weight_step;  ///< from a result row's weights to the next one's, and along k
  int64_t leading;                  ///< from a row that is read to the next
  int64_t c_row, c_step;            ///< from a result row to the next, and along n
};

/// Sums of k rows of neighbours with their weights (+ c), for `count` result rows from one on: few rows times
/// a matrix, which is bound by reading it. The sums of some columns stay in the first-level cache.
template <class T, int count>
void sum_weighted_rows(const Gemm<T>& p, const FewRows& of, const T* weights, const T* rows, T* c) {
  constexpr int64_t block = 2048 / count, at_once = 4;
  alignas(64) T sums[count][block];
  for (int64_t first = 0; first < of.n; first += block) {
    const int64_t columns = std::min(block, of.n - first);
    for (T(&sum)[block] : sums) std::fill_n(sum, columns, T(0));
    int64_t k = 0;
    for (; k + at_once <= p.k; k += at_once) {
      const T* const row = rows + k * of.leading + first;
      T w[count][at_once];
      for (int r = 0; r < count; ++r)
        for (int64_t i = 0; i < at_once; ++i) w[r][i] = weights[r * of.weight_row + (k + i) * of.weight_step];
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < columns; ++i)
        for (int r = 0; r < count; ++r)
          sums[r][i] += (w[r][0] * row[i] + w[r][1] * row[of.leading + i]) +
                        (w[r][2] * row[2 * of.leading + i] + w[r][3] * row[3 * of.leading + i]);
    }
    for (int r = 0; r < count; ++r) {
      for (int64_t rest = k; rest < p.k; ++rest) {
        const T* const row = rows + rest * of.leading + first;
        const T w = weights[r * of.weight_row + rest * of.weight_step];
        PLEAT_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < columns; ++i) sums[r][i] += w * row[i];
      }
      T* const to = c + r * of.c_row + first * of.c_step;
      if (p.accumulate)
        for (int64_t i = 0; i < columns; ++i) to[i * of.c_step] += p.alpha * sums[r][i];
      else
        for (int64_t i = 0; i < columns; ++i) to[i * of.c_step] = p.alpha * sums[r][i];
    }
  }
}

/// The same by up to four result rows at a time.
template <class T>
void sum_few_rows(const Gemm<T>& p, const FewRows& of, const T* weights, const T* rows) {
  static constexpr std::array sum = {sum_weighted_rows<T, 1>, sum_weighted_rows<T, 2>,
                                     sum_weighted_rows<T, 3>, sum_weighted_rows<T, 4>};
  constexpr auto most = static_cast<int64_t>(sum.size());
  for (int64_t row = 0; row < of.rows; row += most)
    sum[static_cast<std::size_t>(std::min(most, of.rows - row) - 1)](p, of, weights + row * of.weight_row,
                                                                     rows, p.c + row * of.c_row);
}
/// Whether so many result rows of so many elements are few.
constexpr bool are_few_rows(int64_t rows, int64_t n) { return rows == 1 || (rows <= 8 && n >= 64); }

/// Some rows of op(A) and columns of op(B), both with neighbours along k: each product of two vectors is
/// summed by itself, and its lanes in the end.
template <class T, int rows, int columns>
void multiply_dots(const Gemm<T>& p, int64_t column) {
  using simd::for_constants;
  using simd::lanes;
  using V = simd::Vector<T>;
  const T* const b = p.b + column * p.ldb;
  V sums[rows][columns] = {};
  int64_t k = 0;
  for (; k + lanes<T> <= p.k; k += lanes<T>) {
    V of_b[columns];
    for_constants<columns>([&](auto j) { of_b[j] = simd::load(b + j * p.ldb + k); });
    for_constants<rows>([&](auto i) {
      const V of_a = simd::load(p.a + i * p.lda + k);
      for_constants<columns>([&](auto j) { sums[i][j] += of_a * of_b[j]; });
    });
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      T sum = 0;
      for (int64_t rest = k; rest < p.k; ++rest) sum += p.a[i * p.lda + rest] * b[j * p.ldb + rest];
      T lane[lanes<T>];
      simd::store(lane, sums[i][j]);
      for (int64_t width = lanes<T> / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width; ++l) lane[l] += lane[l + width];
      T& c = p.c[i * p.ldc + column + j];
      c = (p.accumulate ? c : T(0)) + p.alpha * (lane[0] + sum);
    }
}

/// Rows too few for panels to pay, times the transpose of a matrix, which is read where it lies.
constexpr int64_t fewest_dot_rows = 2, most_dot_rows = 7, least_dot_vectors = 8;
template <class T, int rows>
void multiply_few_rows(const Gemm<T>& p) {
  constexpr int together = simd::registers == 32 && rows <= 4 ? 4 : 2;
  int64_t column = 0;
  for (; column + together <= p.n; column += together) multiply_dots<T, rows, together>(p, column);
  for (; column < p.n; ++column) multiply_dots<T, rows, 1>(p, column);
}
template <class T, int... i>
void multiply_few_rows(const Gemm<T>& p, std::integer_sequence<int, i...>) {
  static constexpr void (*of_rows[])(const Gemm<T>&) = {multiply_few_rows<T, fewest_dot_rows + i>...};
  of_rows[p.m - fewest_dot_rows](p);
}
template <class T>
bool is_of_dots(const Gemm<T>& p) {
  return p.m >= fewest_dot_rows && p.m <= most_dot_rows && !p.transpose_a && p.transpose_b &&
         p.k >= least_dot_vectors * simd::lanes<T>;
}

/// That are packed together: a kilobyte of a row of op(B), and in a set of the first-level cache not more
/// lines than it has ways.
constexpr int64_t panels_at_once = 8;

/// By panels: of so many columns at a time that these stay in the second-level cache until all rows have
/// passed. Where the sums stay there as well, of a part of the depth at a time.
template <class T>
void multiply_by_stripes(const Gemm<T>& p) {
  constexpr int64_t bytes = 256 << 10, least = 256;  // fewer columns do not outweigh the copies of op(A)
  constexpr auto element = static_cast<int64_t>(sizeof(T));
  const int64_t fitting = bytes / (p.k * element);
  const int64_t columns = std::min(p.n, std::max(least, fitting - fitting % panel_columns<T>));
  const int64_t depth = p.m * columns * element <= bytes ? depth_block : p.k;
  const int64_t parts = ceil_div(p.k, depth);
  const auto block = [&](int64_t i) {
    Gemm<T> of = part_of(block_of(p, 0, p.m, i / parts * columns, columns), depth, i % parts);
    of.accumulate = p.accumulate || i % parts > 0;
    return of;
  };
  Gemm<T> product = block(0);
  for (int64_t i = 1; product.n > 0; ++i) {
    const ColumnPanels<T> panels(product);
    for (int64_t panel = 0; panel < panels.count(); panel += panels_at_once)
      panels.pack(product, panel, panels_at_once);
    const Gemm<T> next = block(i);
    multiply_panels(product, panels.from(0), next.n > 0 ? &next : nullptr);
    product = next;
  }
}

template <class T>
void multiply_one(const Gemm<T>& given) {
  if (pays_panels(given)) return multiply_by_stripes(given);
  const Gemm<T> p = started(given);
  if (p.m == 1 && p.n == 1 && (!p.transpose_a || p.lda == 1) && (p.transpose_b || p.ldb == 1))
    return multiply_vectors(p);
  if (!p.transpose_b && are_few_rows(p.m, p.n))
    return sum_few_rows(p, {p.m, p.n, p.transpose_a ? 1 : p.lda, p.transpose_a ? p.lda : 1, p.ldb, p.ldc, 1},
                        p.a, p.b);
  if (p.transpose_a && are_few_rows(p.n, p.m))
    return sum_few_rows(p, {p.n, p.m, p.transpose_b ? p.ldb : 1, p.transpose_b ? 1 : p.ldb, p.lda, 1, p.ldc},
                        p.b, p.a);
  if (is_of_dots(p))
    return multiply_few_rows(p, std::make_integer_sequence<int, most_dot_rows - fewest_dot_rows + 1>());
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
  const auto memory = allocate_array<T>((p.m + p.n) * p.k * most);
  T* const buffer = memory.get();
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

/// Blocks of C that share the panels of op(B), where these pay. Of one term.
template <class T>
struct SharedPanels {
  static constexpr LeastBlock least{
      .work = 1 << 20, .rows = 32, .columns = 64, .column_step = panel_columns<T>};

  void operator()(const Gemm<T>& p, Blocking block, int64_t tiles) const {
    // Panels that only one block of rows reads are its own.
    if (!pays_panels(p) || p.m <= block.rows) return SeparateBlocks<T, T>()(p, block, tiles);
    // Each block copies its rows of op(A). The bits do not depend on how many blocks there are, so a few
    // threads have fewer.
    const int64_t enough = int64_t{8} * num_threads();
    for (; tiles > enough && block.columns < p.n; tiles = ceil_div(tiles, 2)) block.columns *= 2;
    for (; tiles > enough && block.rows < row_block; tiles = ceil_div(tiles, 2)) block.rows *= 2;
    // Stripes of columns whose panels take little memory.
    constexpr int64_t most_bytes = 16 << 20;
    const int64_t column_bytes = block.columns * p.k * static_cast<int64_t>(sizeof(T));
    const int64_t columns = block.columns * std::max<int64_t>(1, most_bytes / column_bytes);
    for (int64_t first = 0; first < p.n; first += columns)
      multiply_stripe(block_of(p, 0, p.m, first, columns), block);
  }

 private:
  static void multiply_stripe(const Gemm<T>& p, const Blocking& block) {
    const ColumnPanels<T> panels(p);
    const int64_t parts = ceil_div(p.k, depth_block);
    parallel_chunks(ceil_div(panels.count(), panels_at_once) * parts, [&](int64_t i) {
      const int64_t depth = i % parts * depth_block;
      panels.pack_part(p, i / parts * panels_at_once, panels_at_once, depth,
                       std::min(depth_block, p.k - depth));
    });
    multiply_blocks(p, block,
                    [&](const Gemm<T>& part, int64_t column) { multiply_panels(part, panels.from(column)); });
  }
};

template <class T>
void multiply_parallel(const Gemm<T>& p) {
  if (p.terms == 1)
    gemm_by_blocks(p, SharedPanels<T>());
  else
    gemm_by_blocks(p);
}

template <class T>
void multiply_packed(const Gemm<T>& p, const ColumnPanels<T>& panels) {
  multiply_blocks_of_packed(p, SharedPanels<T>::least, [&](const Gemm<T>& part, int64_t column) {
    multiply_panels(part, panels.from(column));
  });
}

}  // namespace

void gemm_serial(const Gemm<float>& product) { multiply(product); }
void gemm_serial(const Gemm<double>& product) { multiply(product); }
void gemm(const Gemm<float>& product) { multiply_parallel(product); }
void gemm(const Gemm<double>& product) { multiply_parallel(product); }
void gemm(const Gemm<float>& product, const ColumnPanels<float>& panels) { multiply_packed(product, panels); }
void gemm(const Gemm<double>& product, const ColumnPanels<double>& panels) {
  multiply_packed(product, panels);
}

}  // namespace pleat::ops
