#include "pleat/ops/reduce/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pleat/core/base/simd.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/reduce/map_row.h"

namespace pleat::ops::reduction {
namespace {

using simd::lanes;
using simd::load;
using simd::Vector;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Of the last vector of a row those elements that no vector before has, and 0 for the others.
template <class T>
class Tail {
 public:
  explicit Tail(int64_t n) : mask_(load(ends.data() + n % lanes<T>)) {}
  Vector<T> of(const Vector<T>& last) const { return mask_ ? last : Vector<T>{}; }

 private:
  static constexpr std::array<BitsOf<T>, 2 * lanes<T>> ends = [] {
    std::array<BitsOf<T>, 2 * lanes<T>> all{};
    std::fill(all.begin() + lanes<T>, all.end(), -1);
    return all;
  }();
  Vector<BitsOf<T>> mask_;
};

Vector<double> widened(const Vector<double>& x) { return x; }
Vector<double> widened(const Vector<float>& x) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr std::size_t half = sizeof...(i);
    return __builtin_convertvector(__builtin_shufflevector(x, x, i...), Vector<double>) +
           __builtin_convertvector(__builtin_shufflevector(x, x, (half + i)...), Vector<double>);
  }
  (std::make_index_sequence<lanes<double>>());
}

/// The sum of the n >= lanes<T> elements of which at(i) is a vector, left in as many parts.
template <bool fours, class T, class At>
Vector<double> sum_of_vectors(int64_t n, const Tail<T>& tail, const At& at) {
  Vector<double> total{};
  int64_t i = 0;
  if constexpr (fours)
    for (; i + 4 * lanes<T> <= n; i += 4 * lanes<T>)
      total += widened((at(i) + at(i + lanes<T>)) + (at(i + 2 * lanes<T>) + at(i + 3 * lanes<T>)));
  Vector<T> rest{};
  for (; i + lanes<T> <= n; i += lanes<T>) {
    if constexpr (fours)
      rest += at(i);
    else
      total += widened(at(i));
  }
  if (i < n) rest += tail.of(at(n - lanes<T>));
  return total + widened(rest);
}

/// to[r] = what the elements of row(r) come to.
template <class T, class Row, class Join>
void fold_rows(T* to, int64_t rows, const Row& row, const Join& join) {
  for (int64_t first = 0; first < rows; first += lanes<T>) {
    const int64_t count = std::min(lanes<T>, rows - first);
    Vector<T> of[lanes<T>] = {};
    for (int64_t r = 0; r < count; ++r) of[r] = row(first + r);
    for (int64_t half = lanes<T> / 2; half > 0; half /= 2)
      for (int64_t r = 0; r < half; ++r) {
        Vector<T> lower, upper;
        simd::interleave<T, simd::register_bytes>(of[r], of[r + half], lower, upper);
        of[r] = join(lower, upper);
      }
    for (int64_t r = 0; r < count; ++r) to[first + r] = of[0][r];
  }
}

/// `vectors(r)` gives the function `at` of row r, `element(r, i)` an element.
template <class T, class Vectors, class Element>
void sums_of(double* sums, int64_t rows, int64_t n, bool exactly, const Vectors& vectors,
             const Element& element) {
  const auto one_by_one = [&](int64_t r) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += static_cast<double>(element(r, i));
    return total;
  };
  if (n < lanes<T>) {
    for (int64_t r = 0; r < rows; ++r) sums[r] = one_by_one(r);
    return;
  }
  const Tail<T> tail(n);
  const auto plus = [](const Vector<double>& a, const Vector<double>& b) { return a + b; };
  const auto exact = [&](int64_t r) { return sum_of_vectors<false>(n, tail, vectors(r)); };
  if (exactly && sizeof(T) < sizeof(double)) return fold_rows(sums, rows, exact, plus);
  fold_rows(
      sums, rows, [&](int64_t r) { return sum_of_vectors<true>(n, tail, vectors(r)); }, plus);
  for (int64_t r = 0; r < rows; ++r)
    if (!std::isfinite(sums[r])) sums[r] = one_by_one(r);
}

}  // namespace

template <class T>
void row_sums(double* sums, const T* x, int64_t step, int64_t rows, int64_t n, bool exactly) {
  sums_of<T>(
      sums, rows, n, exactly,
      [=](int64_t r) { return [row = x + r * step](int64_t i) { return load(row + i); }; },
      [=](int64_t r, int64_t i) { return x[r * step + i]; });
}

template <class T>
void row_dots(double* sums, const T* a, const T* b, int64_t rows, int64_t n) {
  sums_of<T>(
      sums, rows, n, false,
      [=](int64_t r) { return [=](int64_t i) { return load(a + r * n + i) * load(b + r * n + i); }; },
      [=](int64_t r, int64_t i) { return a[r * n + i] * b[r * n + i]; });
}

template <class T>
void row_exponentials(T* y, T* largest, double* sums, const T* x, int64_t step, int64_t rows, int64_t n) {
  const auto better = [](const Vector<T>& a, const Vector<T>& b) {
    const Vector<T> winner = b > a ? b : a;
    return b != b ? b : winner;
  };
  const auto largest_of = [&](const T* row) {
    const auto at = [=](int64_t i) { return load(row + i); };
    Vector<T> best = at(n - lanes<T>);
    int64_t i = 0;
    for (; i + 4 * lanes<T> <= n; i += 4 * lanes<T>)
      best = better(
          best, better(better(at(i), at(i + lanes<T>)), better(at(i + 2 * lanes<T>), at(i + 3 * lanes<T>))));
    for (; i + lanes<T> <= n; i += lanes<T>) best = better(best, at(i));
    return best;
  };
  if (n < lanes<T>)
    for (int64_t r = 0; r < rows; ++r) largest[r] = Fold<ExtremeStep<T, true>>{}.row(x + r * step, n, 0);
  else
    fold_rows(
        largest, rows, [&](int64_t r) { return largest_of(x + r * step); }, better);
  // Ends of long rows are little: one pass less.
  const bool is_long = n >= least_long_row;
  for (int64_t r = 0; r < rows; ++r) {
    const T from = exponent_shift(largest[r]);
    if (is_long)
      map(y + r * n, x + r * step, n, [=](T value) { return vmath::exp(value - from); });
    else
      map_row(
          y + r * n, n, [=](const auto& v) { return v - from; }, x + r * step);
  }
  if (!is_long) map(y, y, rows * n, [](T value) { return vmath::exp(value); });
  row_sums(sums, y, n, rows, n);
}

#define PLEAT_ROWS(T)                                                         \
  template void row_sums(double*, const T*, int64_t, int64_t, int64_t, bool); \
  template void row_dots(double*, const T*, const T*, int64_t, int64_t);      \
  template void row_exponentials(T*, T*, double*, const T*, int64_t, int64_t, int64_t);
PLEAT_ROWS(float)
PLEAT_ROWS(double)
#undef PLEAT_ROWS

}  // namespace pleat::ops::reduction
