#include <array>
#include <cmath>
#include <limits>

#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

namespace {

/// Sums squared distances from a number.
template <class T>
struct DistanceStep {
  using In = T;
  using State = double;
  double from = 0;
  double start() const { return 0; }
  double step(double total, T x) const {
    const double d = static_cast<double>(x) - from;
    return total + d * d;
  }
  double join(double a, double b) const { return a + b; }
};

/// Count, mean and sum of squared distances from it, of each block in two passes over the cached block.
template <class T>
struct Moments {
  using In = T;
  struct State {
    double count, mean, squares;
  };
  static constexpr bool uses_index = false;

  State empty() const { return {0, 0, 0}; }

  void merge(State& into, const State& other) const {
    if (other.count == 0) return;
    const double count = into.count + other.count;
    const double share = other.count / count;
    const double apart = other.mean - into.mean;
    into.mean += apart * share;
    into.squares += other.squares + apart * apart * share * into.count;
    into.count = count;
  }

  State row(const T* x, int64_t n, int64_t) const {
    const auto count = static_cast<double>(n);
    const double mean = Fold<SumStep<T>>{}.row(x, n, 0) / count;
    return {count, mean, Fold<DistanceStep<T>>{{mean}}.row(x, n, 0)};
  }

  void columns(State* states, const T* const* rows, int64_t row_count, int64_t n, int64_t) const {
    alignas(64) std::array<double, column_block> means;
    alignas(64) std::array<double, column_block> squares{};
    double* const m = means.data();
    double* const q = squares.data();
    const auto count = static_cast<double>(row_count);
    Fold<SumStep<T>>{}.columns(m, rows, row_count, n, 0);
    for (int64_t j = 0; j < n; ++j) m[j] /= count;
    for (int64_t r = 0; r < row_count; ++r)
      map(q, q, rows[r], m, n, [](double sum, T x, double mean) {
        const double d = static_cast<double>(x) - mean;
        return sum + d * d;
      });
    for (int64_t j = 0; j < n; ++j) states[j] = {count, m[j], q[j]};
  }
};

VarMean moments(const char* op, const Tensor& x, const Dims& dims, const VarOptions& options, bool root) {
  check<ValueError>(std::isfinite(options.correction), "{}: correction must be a finite number, got {}", op,
                    options.correction);
  const Plan plan = make_plan(op, x, dims, options.keepdim);
  const DType dtype = floating_result(x.dtype());
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    const Tensor var = empty_result(plan, dtype_of<T>());
    const Tensor mean = empty_result(plan, dtype_of<T>());
    T* const v = var.data<T>();
    T* const m = mean.data<T>();
    reduce(Moments<T>{}, plan, x, [&](int64_t at, const typename Moments<T>::State& state) {
      const double degrees = state.count - options.correction;
      const double variance =
          degrees > 0 ? state.squares / degrees : std::numeric_limits<double>::quiet_NaN();
      v[at] = static_cast<T>(root ? std::sqrt(variance) : variance);
      m[at] = static_cast<T>(state.count > 0 ? state.mean : std::numeric_limits<double>::quiet_NaN());
    });
    return VarMean{cast(var, dtype), cast(mean, dtype)};
  });
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, VarOptions options) {
  return moments("var", x, dims, options, false).var;
}

Tensor stddev(const Tensor& x, const Dims& dims, VarOptions options) {
  return moments("stddev", x, dims, options, true).var;
}

VarMean var_mean(const Tensor& x, const Dims& dims, VarOptions options) {
  return moments("var_mean", x, dims, options, false);
}

}  // namespace pleat::ops
