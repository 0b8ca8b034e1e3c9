#include <array>
#include <cmath>

#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

namespace {

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

  State empty() const { return {Largest::worst(), 0}; }

  void merge(State& into, const State& other) const {
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

  /// What to subtract: where all elements are -infinity, or one is infinity, the difference would be NaN.
  static T shift(T largest) { return std::isfinite(largest) ? largest : T(0); }

  State row(const T* x, int64_t n, int64_t) const {
    const T largest = Fold<Largest>{}.row(x, n, 0);
    return {largest, Fold<ExpStep>{{shift(largest)}}.row(x, n, 0)};
  }

  void columns(State* states, const T* const* rows, int64_t row_count, int64_t n, int64_t) const {
    alignas(64) std::array<T, column_block> largest;
    alignas(64) std::array<T, column_block> shifts;
    alignas(64) std::array<double, column_block> sums{};
    Fold<Largest>{}.columns(largest.data(), rows, row_count, n, 0);
    map(shifts.data(), largest.data(), n, shift);
    for (int64_t r = 0; r < row_count; ++r)
      map(sums.data(), sums.data(), rows[r], shifts.data(), n,
          [](double sum, T x, T from) { return sum + static_cast<double>(vmath::exp(x - from)); });
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) states[j] = {largest[j], sums[j]};
  }

 private:
  struct ExpStep {
    using In = T;
    using State = double;
    T from = 0;
    double start() const { return 0; }
    double step(double total, T x) const { return total + static_cast<double>(vmath::exp(x - from)); }
    double join(double a, double b) const { return a + b; }
  };
};

}  // namespace

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("logsumexp", x, dims, keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    using State = typename LogSumExp<T>::State;
    return reduce_to<T>(LogSumExp<T>{}, plan, x, floating_result(x.dtype()), [](const State& state) {
      return static_cast<T>(static_cast<double>(state.largest) + std::log(state.sum));
    });
  });
}

}  // namespace pleat::ops
