// Host and device.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/reduce_to.h"

namespace pleat::ops {

using namespace reduction;

namespace {

/// Sums squared distances from a number.
template <class T>
struct DistanceStep {
  using In = T;
  using State = double;
  double from = 0;
  PLEAT_HOST_DEVICE double start() const { return 0; }
  PLEAT_HOST_DEVICE double step(double total, T x) const {
    const double d = static_cast<double>(x) - from;
    return total + d * d;
  }
  PLEAT_HOST_DEVICE double join(double a, double b) const { return a + b; }
};

/// Count, mean and sum of squared distances from it, of each block in two passes over the cached block.
template <class T>
struct Moments {
  using In = T;
  struct State {
    double count, mean, squares;
  };
  static constexpr bool uses_index = false;
  static constexpr int64_t short_run = 32;

  PLEAT_HOST_DEVICE State empty() const { return {0, 0, 0}; }

  PLEAT_HOST_DEVICE void merge(State& into, const State& other) const {
    if (other.count == 0) return;
    const double count = into.count + other.count;
    const double share = other.count / count;
    const double apart = other.mean - into.mean;
    into.mean += apart * share;
    into.squares += other.squares + apart * apart * share * into.count;
    into.count = count;
  }

  /// What a thread gathers in one pass: sums about its first element. That one's own distance from the mean
  /// is part of the squares, so that taking `sum`^2 / `count` off costs a factor of `count` of float64's
  /// precision at worst.
  struct Running {
    double count, from, sum, squares;
  };
  PLEAT_HOST_DEVICE Running begin() const { return {0, 0, 0, 0}; }
  template <std::size_t n>
  PLEAT_HOST_DEVICE void add(Running& r, const std::array<T, n>& x, int64_t, int64_t) const {
    const auto first = static_cast<double>(x[0]);
    if (r.count == 0 && std::isfinite(first)) r.from = first;
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(x[i]) - r.from;
      r.sum += d;
      r.squares += d * d;
    }
    r.count += static_cast<double>(n);
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const {
    if (r.count == 0) return empty();
    const double squares = r.squares - r.sum * (r.sum / r.count);
    return {r.count, r.from + r.sum / r.count, squares < 0 ? 0 : squares};
  }

  State row(const T* x, int64_t n, int64_t) const {
    const auto count = static_cast<double>(n);
    const double mean = Fold<SumStep<T, true>>{}.row(x, n, 0) / count;
    return {count, mean, Fold<DistanceStep<T>>{{mean}}.row(x, n, 0)};
  }

  void columns(State* states, const T* const* rows, int64_t row_count, int64_t n, int64_t) const {
    alignas(64) std::array<double, column_block> means;
    alignas(64) std::array<double, column_block> squares{};
    double* const m = means.data();
    double* const q = squares.data();
    const auto count = static_cast<double>(row_count);
    Fold<SumStep<T, true>>{}.columns(m, rows, row_count, n, 0);
    for (int64_t j = 0; j < n; ++j) m[j] /= count;
    for (int64_t r = 0; r < row_count; ++r)
      map(q, q, rows[r], m, n, [](double sum, T x, double mean) {
        const double d = static_cast<double>(x) - mean;
        return sum + d * d;
      });
    for (int64_t j = 0; j < n; ++j) states[j] = {count, m[j], q[j]};
  }
};

template <class T>
struct VarianceAndMean {
  double correction;
  bool root;

  template <class State>
  PLEAT_HOST_DEVICE Two<T, T> operator()(const State& state) const {
    const double degrees = state.count - correction;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double variance = degrees > 0 ? state.squares / degrees : nan;
    return {static_cast<T>(root ? std::sqrt(variance) : variance),
            static_cast<T>(state.count > 0 ? state.mean : nan)};
  }
};

struct GradientFromMean {
  double factor, degrees;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T g, T x, T mean) const {
    return g * static_cast<T>(factor) / static_cast<T>(degrees) * (x - mean);
  }
};

}  // namespace

VarMean reduce_moments(const char* op, const Tensor& x, const Dims& dims, const VarOptions& options,
                       bool root) {
  check_named_once(op, dims, options.dim);
  check<ValueError>(std::isfinite(options.correction), "{}: correction must be a finite number, got {}", op,
                    options.correction);
  const Plan plan = make_plan(op, x, dims, options.keepdim);
  const DType dtype = floating_result(x.dtype());
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    const auto [var, mean] =
        reduce_to_two(op, Moments<T>{}, plan, x, dtype, dtype, VarianceAndMean<T>{options.correction, root});
    return VarMean{var, mean};
  });
}

Tensor moments_gradient(const Tensor& g, const Tensor& x, const Tensor& mean, double factor, double degrees) {
  const RecordOp range("moments_gradient", g, x);
  const Tensor dx = empty_as(std::array{x}, x.shape(), promote(g.dtype(), x.dtype()));
  map_into<Floating>("moments_gradient", dx.dtype(), dx, std::array{g, x, mean},
                     GradientFromMean{factor, degrees});
  return dx;
}

}  // namespace pleat::ops
