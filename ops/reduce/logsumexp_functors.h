// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/rows.h"

namespace pleat::ops::reduction {

/// What to take off exponents below `largest`: where all are -infinity, or one is infinity, the difference to
/// the largest would be NaN.
template <class T>
PLEAT_HOST_DEVICE T exponent_shift(T largest) {
  return std::isfinite(largest) ? largest : T(0);
}

/// Adds exp(row(r)[j] - from[j]) of `count` rows to sums[j]: four at once, as to widen each costs more than
/// to add it. None may be infinite.
template <class T, class Row>
void add_exponentials(double* sums, int64_t count, const Row& row, const T* from, int64_t n) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const T *const a = row(r), *const b = row(r + 1), *const c = row(r + 2), *const d = row(r + 3);
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < n; ++j)
      sums[j] += static_cast<double>((vmath::exp(a[j] - from[j]) + vmath::exp(b[j] - from[j])) +
                                     (vmath::exp(c[j] - from[j]) + vmath::exp(d[j] - from[j])));
  }
  for (; r < count; ++r)
    map(sums, sums, row(r), from, n,
        [](double sum, T x, T shift) { return sum + static_cast<double>(vmath::exp(x - shift)); });
}

/// The largest element, and the sum of exp(x - largest).
template <class T>
struct LogSumExp {
  using In = T;
  using Largest = ExtremeStep<T, true>;
  struct State {
    T largest;
    double sum;
  };
  static constexpr bool uses_index = false;
  static constexpr int64_t short_run = 32;

  PLEAT_HOST_DEVICE State empty() const { return {Largest::worst(), 0}; }

  PLEAT_HOST_DEVICE void merge(State& into, const State& other) const {
    if (into.sum == 0) {
      into = other;  // most merges are a first one: no exponential
    } else if (other.largest == into.largest) {
      into.sum += other.sum;
    } else if (other.largest < into.largest) {
      into.sum +=
          other.sum * std::exp(static_cast<double>(other.largest) - static_cast<double>(into.largest));
    } else if (other.largest > into.largest) {
      into.sum = other.sum +
                 into.sum * std::exp(static_cast<double>(into.largest) - static_cast<double>(other.largest));
      into.largest = other.largest;
    } else if (into.largest == into.largest) {
      into = other;  // a NaN
    }
  }

  using Running = State;
  PLEAT_HOST_DEVICE Running begin() const { return empty(); }
  template <std::size_t n>
  PLEAT_HOST_DEVICE void add(Running& r, const std::array<T, n>& x, int64_t, int64_t) const {
    T largest = r.largest;
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) largest = Largest::better(largest, x[i]);
    const T from = exponent_shift(largest);
    if (r.sum != 0 && largest != r.largest)
      r.sum *= std::exp(static_cast<double>(r.largest) - static_cast<double>(from));
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) r.sum += static_cast<double>(vmath::exp(x[i] - from));
    r.largest = largest;
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const { return r; }

  State row(const T* x, int64_t n, int64_t) const {
    State state;
    rows(&state, x, n, 1, n);
    return state;
  }

  void rows(State* states, const T* x, int64_t step, int64_t count, int64_t n) const {
    alignas(64) std::array<T, longest_row> exponentials;
    std::array<T, longest_row> largest;
    std::array<double, longest_row> sums;
    const int64_t together = std::max<int64_t>(1, longest_row / n);
    for (int64_t first = 0; first < count; first += together) {
      const int64_t some = std::min(together, count - first);
      row_exponentials(exponentials.data(), largest.data(), sums.data(), x + first * step, step, some, n);
      for (std::size_t r = 0; r < static_cast<std::size_t>(some); ++r)
        states[static_cast<std::size_t>(first) + r] = {largest[r], sums[r]};
    }
  }

  void columns(State* states, const T* const* rows, int64_t row_count, int64_t n, int64_t) const {
    alignas(64) std::array<T, column_block> largest;
    alignas(64) std::array<T, column_block> shifts;
    alignas(64) std::array<double, column_block> sums{};
    Fold<Largest>{}.columns(largest.data(), rows, row_count, n, 0);
    map(shifts.data(), largest.data(), n, exponent_shift<T>);
    add_exponentials(
        sums.data(), row_count, [=](int64_t r) { return rows[r]; }, shifts.data(), n);
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) states[j] = {largest[j], sums[j]};
  }
};

template <class T>
struct LogOfSum {
  template <class State>
  PLEAT_HOST_DEVICE T operator()(const State& state) const {
    return static_cast<T>(static_cast<double>(state.largest) + vmath::log(state.sum));
  }
};

}  // namespace pleat::ops::reduction
