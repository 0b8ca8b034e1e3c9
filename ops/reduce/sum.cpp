#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("sum", x, dims, keepdim);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to<T>(Fold<SumStep<T>>{}, plan, x, dtype,
                        [](SumType<T> total) { return static_cast<T>(total); });
  });
}

Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("prod", x, dims, keepdim);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to<T>(Fold<ProductStep<T>>{}, plan, x, dtype,
                        [](SumType<T> total) { return static_cast<T>(total); });
  });
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("mean", x, dims, keepdim);
  const auto n = static_cast<double>(plan.count);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to<T>(Fold<SumStep<T>>{}, plan, x, floating_result(x.dtype()),
                        [n](double total) { return static_cast<T>(total / n); });
  });
}

}  // namespace pleat::ops
