#include <cmath>
#include <limits>

#include "pleat/ops/reduce/kernels.h"
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
  double start() const { return 0; }
  double step(double total, T x) const { return total + power(std::abs(static_cast<double>(x))); }
  double join(double a, double b) const { return a + b; }
};

struct First {
  double operator()(double a) const { return a; }
};
struct Second {
  double operator()(double a) const { return a * a; }
};
struct Zeroth {
  double operator()(double a) const { return a != 0 ? 1 : 0; }
};
struct General {
  double p;
  double operator()(double a) const { return std::pow(a, p); }
};

/// The largest or smallest |x|.
template <class T, bool larger>
struct MagnitudeStep : ExtremeStep<T, larger> {
  T start() const { return larger ? T(0) : std::numeric_limits<T>::infinity(); }
  T step(T best, T x) const { return ExtremeStep<T, larger>::better(best, std::abs(x)); }
};

}  // namespace

Tensor norm(const Tensor& x, const Dims& dims, NormOptions options) {
  const double p = options.p;
  check<ValueError>(!std::isnan(p), "norm: p must be a number, got nan");
  const Plan plan = make_plan("norm", x, dims, options.keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    const auto run = [&](const auto& step, const auto& finish) {
      return reduce_to<T>(Fold<std::decay_t<decltype(step)>>{step}, plan, x, floating_result(x.dtype()),
                          finish);
    };
    const auto as_is = [](auto total) { return static_cast<T>(total); };
    if (p == 2)
      return run(PowerStep<T, Second>{}, [](double total) { return static_cast<T>(std::sqrt(total)); });
    if (p == 1) return run(PowerStep<T, First>{}, as_is);
    if (p == 0) return run(PowerStep<T, Zeroth>{}, as_is);
    if (std::isinf(p))
      return p > 0 ? run(MagnitudeStep<T, true>{}, as_is) : run(MagnitudeStep<T, false>{}, as_is);
    return run(PowerStep<T, General>{{p}},
               [p](double total) { return static_cast<T>(std::pow(total, 1 / p)); });
  });
}

}  // namespace pleat::ops
