// Host and device.
#include "pleat/autograd/call.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce_kernels.h"

namespace pleat::ops {

namespace reduction {

/// Whether any or all elements are not 0. (Of a class in an unnamed namespace nvcc says that nobody reads
/// may_repeat.)
template <class T, bool is_any>
struct LogicStep {
  using In = T;
  using State = uint8_t;
  static constexpr bool may_repeat = true;
  PLEAT_HOST_DEVICE State start() const { return is_any ? 0 : 1; }
  PLEAT_HOST_DEVICE State step(State known, T x) const { return join(known, static_cast<State>(x != T(0))); }
  PLEAT_HOST_DEVICE State join(State a, State b) const { return static_cast<State>(is_any ? a | b : a & b); }
};

}  // namespace reduction

using namespace reduction;

namespace {

template <bool is_any>
Tensor logic(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Call call(op, {x}, [&] { return Attributes{{"dims", dims.values()}, {"keepdim", Flag(keepdim)}}; });
  const Plan plan = make_plan(op, x, dims, keepdim);
  const auto run = [&]<class T>(Type<T>) {
    return reduce_to(op, Fold<LogicStep<T, is_any>>{}, plan, x, boolean, AsIs<bool>{});
  };
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return call.gives(run(Type<bool>{}));  // the loads turn any type into bool
  if (x.dtype() == boolean || x.dtype() == uint8) return call.gives(run(Type<uint8_t>{}));
  return call.gives(dispatch_read(x.dtype(), run));
}

}  // namespace

Tensor any(const Tensor& x, const Dims& dims, Flag keepdim) { return logic<true>("any", x, dims, keepdim); }
Tensor all(const Tensor& x, const Dims& dims, Flag keepdim) { return logic<false>("all", x, dims, keepdim); }

}  // namespace pleat::ops
