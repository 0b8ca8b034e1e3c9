#include <cmath>

#include "pleat/core/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/norm_functors.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

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
    if (uses_grid(x.device()))
      return grid_reduce_to("norm", Fold<PowerStep<T, AnyPower>>{{{p}}}, plan, x, dtype, Root<T>{p});
    const auto run = [&](const auto& power) {
      using Power = std::decay_t<decltype(power)>;
      return walk_to(Fold<PowerStep<T, Power>>{{power}}, plan, x, dtype, Root<T>{p});
    };
    if (p == 2) return run(Second{});
    if (p == 1) return run(First{});
    if (p == 0) return run(Zeroth{});
    return run(General{p});
  });
}

}  // namespace pleat::ops
