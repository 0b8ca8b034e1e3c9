// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/engine.h"
#include "pleat/ops/reduce/rows.h"

/// Reductions that fold one element after another into a number: sums, products, extremes, logic.

namespace pleat::ops::reduction {

/// The operation made of `Step`, for the CPU's loop (engine.h) and the GPU's kernel (reduce_kernel.h):
///   In, State, `State start() const`, `State step(State, In) const`, `State join(State, State) const`.
/// A Step may have `In four(In, In, In, In) const`, four elements as one, where that costs less than four
/// steps. The CPU then takes elements so, unless the result shows that a four left the range: `is_sure`.
/// Where an element may be taken twice, as of a maximum, it has `may_repeat`.
template <class Step>
struct Fold {
  using In = typename Step::In;
  using State = typename Step::State;
  static constexpr bool uses_index = false;
  static constexpr bool has_four = requires(const Step& step, In x) { step.four(x, x, x, x); };
  static constexpr bool may_repeat = requires { Step::may_repeat; };
  static constexpr bool has_rows = requires(State * states, const In* x) { Step::rows(states, x, 0, 0, 0); };
  static constexpr int64_t short_run = has_rows                     ? 16
                                       : has_four || may_repeat     ? 48
                                       : sizeof(State) > sizeof(In) ? 32
                                                                    : 80;  // measured
  Step s{};

  PLEAT_HOST_DEVICE State empty() const { return s.start(); }
  PLEAT_HOST_DEVICE void merge(State& into, const State& other) const { into = s.join(into, other); }

  using Running = State;
  PLEAT_HOST_DEVICE Running begin() const { return s.start(); }
  template <std::size_t n>
  PLEAT_HOST_DEVICE void add(Running& total, const std::array<In, n>& x, int64_t, int64_t) const {
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) total = s.step(total, x[i]);
  }
  PLEAT_HOST_DEVICE State state(const Running& total) const { return total; }

  State row(const In* x, int64_t n, int64_t) const {
    if (n >= lanes) return long_row(x, n);
    State total = s.start();
    for (int64_t i = 0; i < n; ++i) total = s.step(total, x[i]);
    return total;
  }

  void rows(State* states, const In* x, int64_t step, int64_t count, int64_t n) const requires(has_rows) {
    if (n < least_long_row) return s.rows(states, x, step, count, n);
    for (int64_t i = 0; i < count; ++i) states[i] = row(x + i * step, n, 0);
  }

  void columns(State* states, const In* const* rows, int64_t row_count, int64_t n, int64_t) const {
    if constexpr (has_four) {
      columns_of<true>(states, rows, row_count, n);
      int64_t unsure = 0;  // as wide as a state, for the vector unit
      for (int64_t j = 0; j < n; ++j) unsure |= s.is_sure(states[j]) ? 0 : 1;
      if (unsure == 0) return;
    }
    columns_of<false>(states, rows, row_count, n);
  }

 private:
  /// Independent ones, which hide the vector unit's latency; more would cost a short row too much in the end.
  /// Of fewer than 32 choices between doubles g++ 12 makes no vector instructions.
  static constexpr int64_t lanes = may_repeat ? 32 : std::min<int64_t>(32, 128 / sizeof(State));
  static constexpr int64_t few_lanes = 8;  ///< of what is left

  template <bool fours>
  State step_four(State total, In a, In b, In c, In d) const {
    if constexpr (fours)
      return s.step(total, s.four(a, b, c, d));
    else
      return s.step(s.step(s.step(s.step(total, a), b), c), d);
  }

  template <bool fours>
  void columns_of(State* states, const In* const* rows, int64_t row_count, int64_t n) const {
    std::fill_n(states, n, s.start());
    State* __restrict const out = states;
    int64_t r = 0;
    for (; r + 4 <= row_count; r += 4) {
      // Four rows at once: a state is read and written a quarter as often.
      const In* __restrict const a = rows[r];
      const In* __restrict const b = rows[r + 1];
      const In* __restrict const c = rows[r + 2];
      const In* __restrict const d = rows[r + 3];
      for (int64_t next = r + 4; next < std::min(r + 8, row_count); ++next) fetch(rows[next], n);
      for (int64_t j = 0; j < n; ++j) out[j] = step_four<fours>(out[j], a[j], b[j], c[j], d[j]);
    }
    for (; r < row_count; ++r) {
      const In* __restrict const a = rows[r];
      for (int64_t j = 0; j < n; ++j) out[j] = s.step(out[j], a[j]);
    }
  }

  State long_row(const In* x, int64_t n) const {
    if constexpr (has_four) {
      const State total = long_row_of<true>(x, n);
      if (s.is_sure(total)) return total;
    }
    return long_row_of<false>(x, n);
  }

  static void fetch(const In* x, int64_t n) {
    for (int64_t i = 0; i < n; i += 64 / sizeof(In)) __builtin_prefetch(x + i);
  }
  /// What lies so far behind n elements that it would not be in time by the processor's own prefetching.
  static void fetch_ahead(const In* x, int64_t n) { fetch(x + 4096 / sizeof(In), n); }

  // Not inlined: in the loop over rows, g++ 12 keeps lanes in memory rather than in registers.
  template <bool fours>
  [[gnu::noinline]] State long_row_of(const In* x, int64_t n) const {
    std::array<State, lanes> lane;
    lane.fill(s.start());
    const auto at = [](int64_t j) { return static_cast<std::size_t>(j); };
    int64_t i = 0;
    if constexpr (fours)
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
        fetch_ahead(x + i, 4 * lanes);
        for (int64_t j = 0; j < lanes; ++j)
          lane[at(j)] = step_four<true>(lane[at(j)], x[i + j], x[i + lanes + j], x[i + 2 * lanes + j],
                                        x[i + 3 * lanes + j]);
      }
    if constexpr (fours) {
      // Two or three elements, as a four with nothing else.
      const int64_t left = (n - i) / lanes;
      if (left == 3)
        for (int64_t j = 0; j < lanes; ++j)
          lane[at(j)] = step_four<true>(lane[at(j)], x[i + j], x[i + lanes + j], x[i + 2 * lanes + j], In(0));
      else if (left == 2)
        for (int64_t j = 0; j < lanes; ++j)
          lane[at(j)] = step_four<true>(lane[at(j)], x[i + j], x[i + lanes + j], In(0), In(0));
      if (left > 1) i += left * lanes;
    }
    for (; i + lanes <= n; i += lanes) {
      if constexpr (may_repeat) fetch_ahead(x + i, lanes);
      for (int64_t j = 0; j < lanes; ++j) lane[at(j)] = s.step(lane[at(j)], x[i + j]);
    }
    if constexpr (may_repeat) {
      if (i < n)
        for (int64_t j = 0; j < lanes; ++j) lane[at(j)] = s.step(lane[at(j)], x[n - lanes + j]);
      join_halves(lane, lanes / 2, 1);
      return lane[0];
    }
    join_halves(lane, lanes / 2, few_lanes);
    for (; i + few_lanes <= n; i += few_lanes)
      for (int64_t j = 0; j < few_lanes; ++j) lane[at(j)] = s.step(lane[at(j)], x[i + j]);
    State rest = s.start();
    for (; i < n; ++i) rest = s.step(rest, x[i]);
    join_halves(lane, few_lanes / 2, 1);
    return s.join(lane[0], rest);
  }

  void join_halves(std::array<State, static_cast<std::size_t>(lanes)>& lane, int64_t half,
                   int64_t smallest) const {
    for (; half >= smallest; half /= 2)
      for (int64_t j = 0; j < half; ++j)
        lane[static_cast<std::size_t>(j)] =
            s.join(lane[static_cast<std::size_t>(j)], lane[static_cast<std::size_t>(j + half)]);
  }
};

/// The type in which elements of type T are summed: integers in int64, all floating types in float64.
template <class T>
using SumType = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

/// The sum; `exactly`, of float32 without the rounding of fours.
template <class T, bool exactly = false>
struct SumStep {
  using In = T;
  using State = SumType<T>;
  PLEAT_HOST_DEVICE State start() const { return 0; }
  PLEAT_HOST_DEVICE State step(State total, T x) const { return Plus{}(total, static_cast<State>(x)); }
  PLEAT_HOST_DEVICE State join(State a, State b) const { return Plus{}(a, b); }

  // Four float32 are added as such: to widen each costs more than to add it.
  float four(float a, float b, float c, float d) const requires(std::is_same_v<T, float> && !exactly) {
    return (a + b) + (c + d);
  }
  bool is_sure(double total) const { return std::abs(total) <= std::numeric_limits<double>::max(); }

  static void rows(double* sums, const T* x, int64_t step, int64_t count,
                   int64_t n) requires(std::is_floating_point_v<T>) {
    row_sums(sums, x, step, count, n, exactly);
  }
};

template <class T>
struct ProductStep {
  using In = T;
  using State = SumType<T>;
  PLEAT_HOST_DEVICE State start() const { return 1; }
  PLEAT_HOST_DEVICE State step(State total, T x) const { return Times{}(total, static_cast<State>(x)); }
  PLEAT_HOST_DEVICE State join(State a, State b) const { return Times{}(a, b); }
};

/// The larger element where `larger`, else the smaller; a NaN beats all.
template <class T, bool larger>
struct ExtremeStep {
  using In = T;
  using State = T;
  static constexpr bool may_repeat = true;
  PLEAT_HOST_DEVICE static constexpr T worst() {
    if constexpr (std::is_floating_point_v<T>)
      return larger ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    else
      return larger ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  PLEAT_HOST_DEVICE static T better(T best, T x) {
    // Two choices rather than one with `or`: a maximum instruction and a branch that is never taken.
    const T winner = (larger ? x > best : x < best) ? x : best;
    return x != x ? x : winner;
  }
  PLEAT_HOST_DEVICE T start() const { return worst(); }
  PLEAT_HOST_DEVICE T step(T best, T x) const { return better(best, x); }
  PLEAT_HOST_DEVICE T join(T a, T b) const { return better(a, b); }
};

/// What a state becomes in the end: itself, as a T ...
template <class T>
struct AsIs {
  template <class State>
  PLEAT_HOST_DEVICE T operator()(const State& state) const {
    return static_cast<T>(state);
  }
};
/// ... or divided.
template <class T>
struct Quotient {
  double divisor = 1;
  PLEAT_HOST_DEVICE T operator()(double total) const { return static_cast<T>(total / divisor); }
};

}  // namespace pleat::ops::reduction
