// Host and device.
#include "pleat/core/base/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce_kernels.h"

namespace pleat::ops {

using namespace reduction;

Tensor sum(const Tensor& x, const Dims& dims, Flag keepdim) {
  const RecordOp range("sum", x);
  const Plan plan = make_plan("sum", x, dims, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_floating_point_v<T>)
      return reduce_to("sum", Fold<SumStep<T>>{}, plan, x, x.dtype(), Quotient<T>{1});
    else
      return reduce_to("sum", Fold<SumStep<T>>{}, plan, x, int64, AsIs<T>{});
  });
}

Tensor prod(const Tensor& x, const Dims& dims, Flag keepdim) {
  const RecordOp range("prod", x);
  const Plan plan = make_plan("prod", x, dims, keepdim);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("prod", Fold<ProductStep<T>>{}, plan, x, dtype, AsIs<T>{});
  });
}

Tensor mean(const Tensor& x, const Dims& dims, Flag keepdim) {
  const RecordOp range("mean", x);
  const Plan plan = make_plan("mean", x, dims, keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("mean", Fold<SumStep<T>>{}, plan, x, floating_result(x.dtype()),
                     Quotient<T>{static_cast<double>(plan.count)});
  });
}

}  // namespace pleat::ops
