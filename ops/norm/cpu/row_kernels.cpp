#include "pleat/ops/norm/cpu/row_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/parallel/parallel.h"

namespace pleat::ops {
namespace {

using simd::load;
using simd::store;

constexpr int64_t grain_elements = 16384;
/// Elements that are summed in T; such sums are added in float64.
constexpr int64_t block_elements = 512;
/// Columns' sums are kept apart for so many chunks of rows at most, of so many rows at least.
constexpr int64_t most_chunks = 64;
constexpr int64_t least_rows = 8;

/// Rows whose terms of columns' sums are added in T before they are in float64.
constexpr int64_t rows_together = 16;

template <class T>
using Numbers = simd::Vector<T>;

/// The sum of a vector, halves first. Nothing takes its address: it would not stay in a register.
template <class T, int size = simd::register_bytes>
T total(simd::Vector<T, size> numbers) {
  constexpr std::size_t half = size / sizeof(T) / 2;
  if constexpr (half <= 1) {
    return half == 0 ? numbers[0] : numbers[0] + numbers[half];
  } else {
    return [numbers]<std::size_t... i>(std::index_sequence<i...>) {
      return total<T, size / 2>(__builtin_shufflevector(numbers, numbers, i...) +
                                __builtin_shufflevector(numbers, numbers, (half + i)...));
    }
    (std::make_index_sequence<half>());
  }
}

/// Sums of `terms(x[i])`, K numbers or vectors of them for one or a vector of elements: blocks in T, all in
/// float64.
template <std::size_t K, class T, class Terms>
std::array<double, K> sums_of(const T* x, int64_t n, const Terms& terms) {
  constexpr int64_t lanes = simd::lanes<T>;
  std::array<double, K> sums{};
  int64_t i = 0;
  while (i + lanes <= n) {
    Numbers<T> even[K]{}, odd[K]{};
    const int64_t end = std::min(n, i + block_elements);
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      terms(load(x + i), even);
      terms(load(x + i + lanes), odd);
    }
    if (i + lanes <= end) {
      terms(load(x + i), even);
      i += lanes;
    }
    for (std::size_t k = 0; k < K; ++k) sums[k] += static_cast<double>(total<T>(even[k] + odd[k]));
  }
  T rest[K]{};
  for (; i < n; ++i) terms(x[i], rest);
  for (std::size_t k = 0; k < K; ++k) sums[k] += static_cast<double>(rest[k]);
  return sums;
}

/// The mean, and the sum of squared distances from it: in two passes, so that a mean far from 0 costs no
/// digits.
template <class T>
std::array<double, 2> moments(const T* x, int64_t n) {
  const auto count = static_cast<double>(n);
  const auto [sum] = sums_of<1>(x, n, [](const auto& value, auto* sums) { sums[0] += value; });
  const T pivot = static_cast<T>(sum / count);
  const auto [apart, squares] = sums_of<2>(x, n, [pivot](const auto& value, auto* sums) {
    const auto d = value - pivot;
    sums[0] += d;
    sums[1] += d * d;
  });
  // The pivot is the mean up to rounding; what is left of it is taken out here.
  return {static_cast<double>(pivot) + apart / count, std::max(0.0, squares - apart * (apart / count))};
}

/// With h = (x - shift - rest) rstd of n elements: adds up weight dy and weight dy h, and, where
/// `for_columns`, adds dy and dy h to what belongs to the columns.
template <bool for_columns, class T>
void add_sums(const T* dy, const T* x, const T* weight, int64_t n, T shift, T rest, T rstd, double& a,
              double& b, T* dweight, T* dbias) {
  constexpr int64_t lanes = simd::lanes<T>;
  int64_t i = 0;
  while (i + lanes <= n) {
    Numbers<T> block_a{}, block_b{};
    for (const int64_t end = std::min(n, i + block_elements); i + lanes <= end; i += lanes) {
      const Numbers<T> g = load(dy + i);
      const Numbers<T> h = (load(x + i) - shift - rest) * rstd;
      const Numbers<T> weighted = g * load(weight + i);
      block_a += weighted;
      block_b += weighted * h;
      if constexpr (for_columns) {
        store(dbias + i, load(dbias + i) + g);
        store(dweight + i, load(dweight + i) + g * h);
      }
    }
    a += static_cast<double>(total<T>(block_a));
    b += static_cast<double>(total<T>(block_b));
  }
  for (; i < n; ++i) {
    const T h = (x[i] - shift - rest) * rstd;
    a += static_cast<double>(dy[i] * weight[i]);
    b += static_cast<double>(dy[i] * weight[i] * h);
    if constexpr (for_columns) {
      dbias[i] += dy[i];
      dweight[i] += dy[i] * h;
    }
  }
}

/// Moves sums of n columns on, and begins anew.
template <class T>
void add_and_clear(double* __restrict sums, T* __restrict terms, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
  std::fill_n(terms, n, T(0));
}

/// dx of a group of n elements, from its sums.
template <class T>
void write_gradient(const T* __restrict dy, const T* __restrict x, const T* __restrict weight, int64_t n,
                    T shift, double rest, double rstd, double a, double b, T* __restrict dx) {
  const auto count = static_cast<double>(n);
  const double exact_slope = rstd * rstd * b / count;
  const T scale = static_cast<T>(rstd);
  const T slope = static_cast<T>(exact_slope);
  const T offset = static_cast<T>(rstd * a / count - exact_slope * rest);
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * weight[i] * scale - (x[i] - shift) * slope - offset;
}

}  // namespace

template <class T>
void normalize_rows(const RowView& view, int64_t pixels, const T* x, const T* weight, const T* bias,
                    double eps, const GroupStatistics& statistics, T* y) {
  const int64_t size = view.group_size();
  parallel_for(0, view.rows * view.groups, std::max<int64_t>(1, grain_elements / size),
               [&](int64_t group, int64_t end) {
                 for (; group < end; ++group) {
                   const T* __restrict from = x + group * size;
                   T* __restrict to = y + group * size;
                   const auto [mean, squares] = moments(from, size);
                   const double variance = squares / static_cast<double>(size);
                   const double rstd = 1 / std::sqrt(variance + eps);
                   statistics.mean[group] = mean;
                   statistics.variance[group] = variance;
                   statistics.rstd[group] = rstd;
                   const T shift = static_cast<T>(mean);
                   // The part of the mean that its rounding cuts off.
                   const T rest = static_cast<T>(mean - static_cast<double>(shift));
                   const T scale = static_cast<T>(rstd);
                   const T* __restrict w = weight + group % view.groups * (size / pixels);
                   const T* __restrict b = bias + group % view.groups * (size / pixels);
                   if (pixels == 1)
                     for (int64_t i = 0; i < size; ++i)
                       to[i] = (from[i] - shift - rest) * scale * w[i] + b[i];
                   else
                     for (int64_t c = 0; c < size / pixels; ++c, from += pixels, to += pixels)
                       for (int64_t i = 0; i < pixels; ++i)
                         to[i] = (from[i] - shift - rest) * scale * w[c] + b[c];
                 }
               });
}

template <class T>
void normalize_rows_backward(const RowView& view, const T* dy, const T* x, const double* mean,
                             const double* rstd, const T* weight, T* dx, double* dweight, double* dbias) {
  const int64_t size = view.group_size();
  const bool for_columns = dweight != nullptr;
  const int64_t sums_of_columns = for_columns ? 2 * view.columns : 0;
  const int64_t rows =
      std::max({ceil_div(grain_elements, view.columns), ceil_div(view.rows, most_chunks), least_rows});
  const int64_t chunks = ceil_div(view.rows, rows);
  std::vector<double> sums(static_cast<std::size_t>(chunks * sums_of_columns));
  parallel_chunks(chunks, [&](int64_t chunk) {
    double* const own = sums.data() + chunk * sums_of_columns;
    std::vector<T> terms(static_cast<std::size_t>(sums_of_columns));
    const int64_t last = std::min(view.rows, (chunk + 1) * rows);
    for (int64_t row = chunk * rows; row < last; ++row) {
      for (int64_t group = row * view.groups; group < (row + 1) * view.groups; ++group) {
        const int64_t column = group % view.groups * size;
        const T* const g = dy + group * size;
        const T* const from = x + group * size;
        const T shift = static_cast<T>(mean[group]);
        const double rest = mean[group] - static_cast<double>(shift);
        double a = 0;
        double b = 0;
        if (for_columns)
          add_sums<true, T>(g, from, weight + column, size, shift, static_cast<T>(rest),
                            static_cast<T>(rstd[group]), a, b, terms.data() + column,
                            terms.data() + view.columns + column);
        else
          add_sums<false, T>(g, from, weight + column, size, shift, static_cast<T>(rest),
                             static_cast<T>(rstd[group]), a, b, nullptr, nullptr);
        if (dx == nullptr) continue;
        write_gradient(g, from, weight + column, size, shift, rest, rstd[group], a, b, dx + group * size);
      }
      if ((row + 1) % rows_together == 0 || row + 1 == last)
        add_and_clear(own, terms.data(), sums_of_columns);
    }
  });
  if (!for_columns) return;
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

template void normalize_rows(const RowView&, int64_t, const float*, const float*, const float*, double,
                             const GroupStatistics&, float*);
template void normalize_rows(const RowView&, int64_t, const double*, const double*, const double*, double,
                             const GroupStatistics&, double*);
template void normalize_rows_backward(const RowView&, const float*, const float*, const double*,
                                      const double*, const float*, float*, double*, double*);
template void normalize_rows_backward(const RowView&, const double*, const double*, const double*,
                                      const double*, const double*, double*, double*, double*);

}  // namespace pleat::ops
