#include <cmath>

#include "pleat/core/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/moments_functors.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

namespace {

VarMean moments(const char* op, const Tensor& x, const Dims& dims, const VarOptions& options, bool root) {
  const RecordOp range(op, x);
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
