// Host and device.
#include <cmath>
#include <limits>

#include "pleat/core/base/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/power_sum.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

namespace {

/// Sums a power of |x| in float64.
template <class T, class Power>
struct PowerStep {
  using In = T;
  using State = double;
  Power power{};
  PLEAT_HOST_DEVICE double start() const { return 0; }
  PLEAT_HOST_DEVICE double step(double total, T x) const {
    return total + power(std::abs(static_cast<double>(x)));
  }
  PLEAT_HOST_DEVICE double join(double a, double b) const { return a + b; }
};

struct First {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a; }
};
struct Second {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a * a; }
};
struct Third {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a * a * a; }
};
struct Zeroth {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a != 0 ? 1 : 0; }
};
struct General {
  double p;
  PLEAT_HOST_DEVICE double operator()(double a) const { return std::pow(a, p); }
};
/// What the sum of powers becomes.
template <class T>
struct Root {
  double p;
  PLEAT_HOST_DEVICE T operator()(double total) const {
    if (p == 0 || p == 1) return static_cast<T>(total);
    return static_cast<T>(p == 2 ? std::sqrt(total) : std::pow(total, 1 / p));
  }
};

/// The largest or smallest |x|.
template <class T, bool larger>
struct MagnitudeStep : ExtremeStep<T, larger> {
  PLEAT_HOST_DEVICE T start() const { return larger ? T(0) : std::numeric_limits<T>::infinity(); }
  PLEAT_HOST_DEVICE T step(T best, T x) const { return ExtremeStep<T, larger>::better(best, std::abs(x)); }
};

}  // namespace

Tensor norm(const Tensor& x, const Dims& dims, NormOptions options) {
  const RecordOp range("norm", x);
  check_named_once("norm", dims, options.dim);
  const double p = options.p;
  check<ValueError>(!std::isnan(p), "norm: p must be a number, got nan");
  const Plan plan = make_plan("norm", x, dims, options.keepdim);
  const DType dtype = floating_result(x.dtype());
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    if (p == std::numeric_limits<double>::infinity())
      return reduce_to("norm", Fold<MagnitudeStep<T, true>>{}, plan, x, dtype, AsIs<T>{});
    if (std::isinf(p)) return reduce_to("norm", Fold<MagnitudeStep<T, false>>{}, plan, x, dtype, AsIs<T>{});
    const auto run = [&](const auto& power) {
      using Power = std::decay_t<decltype(power)>;
      return reduce_to("norm", Fold<PowerStep<T, Power>>{{power}}, plan, x, dtype, Root<T>{p});
    };
    if (p == 2) return run(Second{});
    if (p == 1) return run(First{});
    if (p == 3) return run(Third{});
    if (p == 0) return run(Zeroth{});
    return run(General{p});
  });
}

double power_sum(const char* op, const Tensor& x, double p) {
  const Plan plan = make_plan(op, x, {}, false);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    const auto run = [&](const auto& operation) {
      double sum = 0;
      reduce(operation, plan, x, [&](int64_t, const auto& state) { sum = static_cast<double>(state); });
      return sum;
    };
    if (p == std::numeric_limits<double>::infinity()) return run(Fold<MagnitudeStep<T, true>>{});
    if (p == 2) return run(Fold<PowerStep<T, Second>>{});
    if (p == 1) return run(Fold<PowerStep<T, First>>{});
    return run(Fold<PowerStep<T, General>>{{General{p}}});
  });
}

}  // namespace pleat::ops
