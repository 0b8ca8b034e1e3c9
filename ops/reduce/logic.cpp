#include "pleat/core/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/logic_functors.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {

using namespace reduction;

namespace {

template <bool is_any>
Tensor logic(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const RecordOp range(op, x);
  const Plan plan = make_plan(op, x, dims, keepdim);
  if (uses_grid(x.device()))  // whose loads turn any type into bool
    return grid_reduce_to(op, Fold<LogicStep<bool, is_any>>{}, plan, x, boolean, AsIs<bool>{});
  const auto run = [&]<class T>(Type<T>) {
    return walk_to(Fold<LogicStep<T, is_any>>{}, plan, x, boolean, AsIs<bool>{});
  };
  if (x.dtype() == boolean || x.dtype() == uint8) return run(Type<uint8_t>{});
  return dispatch_read(x.dtype(), run);
}

}  // namespace

Tensor any(const Tensor& x, const Dims& dims, Flag keepdim) { return logic<true>("any", x, dims, keepdim); }
Tensor all(const Tensor& x, const Dims& dims, Flag keepdim) { return logic<false>("all", x, dims, keepdim); }

}  // namespace pleat::ops
