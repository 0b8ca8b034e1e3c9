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

/// Reductions that fold one element after another into a number: sums, products, extremes, logic.

namespace pleat::ops::reduction {

/// The operation made of `Step`, for the CPU's loop (engine.h) and the GPU's kernel (reduce_kernel.h):
///   In, State, `State start() const`, `State step(State, In) const`, `State join(State, State) const`.
template <class Step>
struct Fold {
  using In = typename Step::In;
  using State = typename Step::State;
  static constexpr bool uses_index = false;
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

  void columns(State* states, const In* const* rows, int64_t row_count, int64_t n, int64_t) const {
    std::fill_n(states, n, s.start());
    State* __restrict const out = states;
    int64_t r = 0;
    for (; r + 4 <= row_count; r += 4) {
      // Four rows at once: a state is read and written a quarter as often.
      const In* __restrict const a = rows[r];
      const In* __restrict const b = rows[r + 1];
      const In* __restrict const c = rows[r + 2];
      const In* __restrict const d = rows[r + 3];
      for (int64_t j = 0; j < n; ++j) out[j] = s.step(s.step(s.step(s.step(out[j], a[j]), b[j]), c[j]), d[j]);
    }
    for (; r < row_count; ++r) {
      const In* __restrict const a = rows[r];
      for (int64_t j = 0; j < n; ++j) out[j] = s.step(out[j], a[j]);
    }
  }

 private:
  static constexpr int64_t lanes = 32;  ///< independent ones fill the vector unit and hide its latency

  // Not inlined: in the loop over rows, g++ 12 keeps lanes in memory rather than in registers.
  [[gnu::noinline]] State long_row(const In* x, int64_t n) const {
    std::array<State, lanes> lane;
    lane.fill(s.start());
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int64_t j = 0; j < lanes; ++j)
        lane[static_cast<std::size_t>(j)] = s.step(lane[static_cast<std::size_t>(j)], x[i + j]);
    for (int64_t j = 0; i + j < n; ++j)
      lane[static_cast<std::size_t>(j)] = s.step(lane[static_cast<std::size_t>(j)], x[i + j]);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t j = 0; j < half; ++j) lane[j] = s.join(lane[j], lane[j + half]);
    return lane[0];
  }
};

/// The type in which elements of type T are summed: integers in int64, all floating types in float64.
template <class T>
using SumType = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

template <class T>
struct SumStep {
  using In = T;
  using State = SumType<T>;
  PLEAT_HOST_DEVICE State start() const { return 0; }
  PLEAT_HOST_DEVICE State step(State total, T x) const { return Plus{}(total, static_cast<State>(x)); }
  PLEAT_HOST_DEVICE State join(State a, State b) const { return Plus{}(a, b); }
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
