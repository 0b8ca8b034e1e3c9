// Host and device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/power_sum.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/reduce_to.h"

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
/// What the sum of powers becomes.
template <class T>
struct Root {
  double p;
  PLEAT_HOST_DEVICE T operator()(double total) const {
    if (p == 0 || p == 1) return static_cast<T>(total);
    return static_cast<T>(PowerNorm{p}.root({total, 1}));
  }
};

/// Whether the norm of float64 shows that squares and cubes were far from the ends of the range.
bool has_room(double norm) { return norm > 1e-90 && norm < 1e90; }

/// The same where powers may leave the range of double.
template <class T>
struct ScaledStep {
  using In = T;
  using State = PowerSum;
  PowerNorm norm;
  PLEAT_HOST_DEVICE PowerSum start() const { return {}; }
  PLEAT_HOST_DEVICE PowerSum step(PowerSum total, T x) const {
    norm.add(total, x);
    return total;
  }
  PLEAT_HOST_DEVICE PowerSum join(PowerSum a, const PowerSum& b) const {
    norm(a, b);
    return a;
  }
};
template <class T>
struct ScaledRoot {
  PowerNorm norm;
  PLEAT_HOST_DEVICE T operator()(const PowerSum& total) const { return static_cast<T>(norm.root(total)); }
};

/// The largest or smallest |x|.
template <class T, bool larger>
struct MagnitudeStep : ExtremeStep<T, larger> {
  PLEAT_HOST_DEVICE T start() const { return larger ? T(0) : std::numeric_limits<T>::infinity(); }
  PLEAT_HOST_DEVICE T step(T best, T x) const { return ExtremeStep<T, larger>::better(best, std::abs(x)); }
};

}  // namespace

Tensor reduce_norm(const Tensor& x, const Dims& dims, const NormOptions& options) {
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
    if (p == 1) return run(First{});
    if (p == 0) return run(Zeroth{});
    if (p == 2 || p == 3) {
      const bool is_narrow = std::is_same_v<T, float> || !is_floating(x.dtype());
      if (is_narrow || x.device().is_cpu()) {
        const Tensor y = p == 2 ? run(Second{}) : run(Third{});
        if (is_narrow || std::ranges::all_of(y.to_vector<double>(), has_room)) return y;
      }
    }
    return reduce_to("norm", Fold<ScaledStep<T>>{{p}}, plan, x, dtype, ScaledRoot<T>{p});
  });
}

double vector_norm(const char* op, const Tensor& x, double p) {
  const Plan plan = make_plan(op, x, {}, false);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    double norm = 0;
    const auto run = [&](const auto& operation, const auto& root) {
      reduce(operation, plan, x, [&](int64_t, const auto& state) { norm = root(state); });
      return norm;
    };
    if (p == std::numeric_limits<double>::infinity())
      return run(Fold<MagnitudeStep<T, true>>{}, AsIs<double>{});
    if (p == 1) return run(Fold<PowerStep<T, First>>{}, AsIs<double>{});
    if (p == 2) {
      run(Fold<PowerStep<T, Second>>{}, Root<double>{p});
      if (std::is_same_v<T, float> || has_room(norm)) return norm;
    }
    return run(Fold<ScaledStep<T>>{{p}}, ScaledRoot<double>{p});
  });
}

}  // namespace pleat::ops
