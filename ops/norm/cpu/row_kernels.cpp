#include "pleat/ops/norm/cpu/row_kernels.h"

#include <algorithm>
#include <vector>

#include <Eigen/Core>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/parallel/parallel.h"

namespace pleat::ops {
namespace {

constexpr int64_t grain_elements = 16384;
/// Elements that are summed in T; such sums are added in float64.
constexpr int64_t block_elements = 512;
/// Columns' sums are kept apart for so many chunks of rows at most.
constexpr int64_t most_chunks = 64;

template <class T>
using Numbers = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Sums of weight dy and of weight dy (x - shift) over n elements.
template <class T>
void add_sums(const T* dy, const T* x, const T* weight, int64_t n, T shift, double& a, double& b) {
  for (int64_t at = 0; at < n; at += block_elements) {
    const int64_t size = std::min(block_elements, n - at);
    const auto g = Numbers<T>(dy + at, size) * Numbers<T>(weight + at, size);
    a += static_cast<double>(g.sum());
    b += static_cast<double>((g * (Numbers<T>(x + at, size) - shift)).sum());
  }
}

/// Adds dy and dy (x - mean) rstd of n elements to their columns.
template <class T>
void add_columns(const T* __restrict dy, const T* __restrict x, int64_t n, T shift, double rest, double rstd,
                 double* __restrict dweight, double* __restrict dbias) {
  for (int64_t i = 0; i < n; ++i) {
    const auto g = static_cast<double>(dy[i]);
    dbias[i] += g;
    dweight[i] += g * (static_cast<double>(x[i] - shift) - rest) * rstd;
  }
}

/// dx of a group of n elements, from its sums.
template <class T>
void write_gradient(const T* __restrict dy, const T* __restrict x, const T* __restrict weight, int64_t n,
                    T shift, double rest, double rstd, double a, double b, T* __restrict dx) {
  const auto count = static_cast<double>(n);
  const double product = (b - rest * a) * rstd;
  const double exact_slope = rstd * rstd * product / count;
  const T scale = static_cast<T>(rstd);
  const T slope = static_cast<T>(exact_slope);
  const T offset = static_cast<T>(rstd * a / count - exact_slope * rest);
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * weight[i] * scale - (x[i] - shift) * slope - offset;
}

}  // namespace

template <class T>
void normalize_rows(const RowView& view, const T* x, const double* mean, const double* rstd, const T* weight,
                    const T* bias, T* y) {
  const int64_t size = view.group_size();
  parallel_for(0, view.rows * view.groups, std::max<int64_t>(1, grain_elements / size),
               [&](int64_t first, int64_t last) {
                 for (int64_t group = first; group < last; ++group) {
                   const T* __restrict from = x + group * size;
                   T* __restrict to = y + group * size;
                   const T* __restrict w = weight + group % view.groups * size;
                   const T* __restrict b = bias + group % view.groups * size;
                   const T shift = static_cast<T>(mean[group]);
                   // The part of the mean that its rounding cuts off.
                   const T rest = static_cast<T>(mean[group] - static_cast<double>(shift));
                   const T scale = static_cast<T>(rstd[group]);
                   for (int64_t i = 0; i < size; ++i) to[i] = (from[i] - shift - rest) * scale * w[i] + b[i];
                 }
               });
}

template <class T>
void normalize_rows_backward(const RowView& view, const T* dy, const T* x, const double* mean,
                             const double* rstd, const T* weight, T* dx, double* dweight, double* dbias) {
  const int64_t size = view.group_size();
  const int64_t rows = std::max(ceil_div(grain_elements, view.columns), ceil_div(view.rows, most_chunks));
  const int64_t chunks = ceil_div(view.rows, rows);
  std::vector<double> sums(static_cast<std::size_t>(chunks * 2 * view.columns));
  parallel_chunks(chunks, [&](int64_t chunk) {
    double* const own_dweight = sums.data() + chunk * 2 * view.columns;
    double* const own_dbias = own_dweight + view.columns;
    const int64_t last = std::min(view.rows, (chunk + 1) * rows);
    for (int64_t group = chunk * rows * view.groups; group < last * view.groups; ++group) {
      const int64_t column = group % view.groups * size;
      const T* const g = dy + group * size;
      const T* const from = x + group * size;
      const T shift = static_cast<T>(mean[group]);
      const double rest = mean[group] - static_cast<double>(shift);
      add_columns(g, from, size, shift, rest, rstd[group], own_dweight + column, own_dbias + column);
      if (dx == nullptr) continue;
      double a = 0;
      double b = 0;
      add_sums(g, from, weight + column, size, shift, a, b);
      write_gradient(g, from, weight + column, size, shift, rest, rstd[group], a, b, dx + group * size);
    }
  });
  std::fill_n(dweight, view.columns, 0.0);
  std::fill_n(dbias, view.columns, 0.0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const double* const own = sums.data() + chunk * 2 * view.columns;
    for (int64_t c = 0; c < view.columns; ++c) {
      dweight[c] += own[c];
      dbias[c] += own[view.columns + c];
    }
  }
}

template void normalize_rows(const RowView&, const float*, const double*, const double*, const float*,
                             const float*, float*);
template void normalize_rows(const RowView&, const double*, const double*, const double*, const double*,
                             const double*, double*);
template void normalize_rows_backward(const RowView&, const float*, const float*, const double*,
                                      const double*, const float*, float*, double*, double*);
template void normalize_rows_backward(const RowView&, const double*, const double*, const double*,
                                      const double*, const double*, double*, double*, double*);

}  // namespace pleat::ops
