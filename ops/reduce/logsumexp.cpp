// Host and device.
#include "pleat/core/base/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/reduce/reduce_kernels.h"

namespace pleat::ops {

using namespace reduction;

Tensor logsumexp(const Tensor& x, const Dims& dims, Flag keepdim) {
  const RecordOp range("logsumexp", x);
  const Plan plan = make_plan("logsumexp", x, dims, keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("logsumexp", LogSumExp<T>{}, plan, x, floating_result(x.dtype()), LogOfSum<T>{});
  });
}

}  // namespace pleat::ops
