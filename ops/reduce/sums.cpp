// Host and device.
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/logsumexp_functors.h"
#include "pleat/ops/reduce/reduce_to.h"

namespace pleat::ops {

namespace reduction {

/// Whether any or all elements are not 0. (Of a class in an unnamed namespace nvcc says that
/// may_repeat is not read.)
template <class T, bool is_any>
struct TruthStep {
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
Tensor truth(const char* op, const Plan& plan, const Tensor& x) {
  const auto run = [&]<class T>(Type<T>) {
    return reduce_to(op, Fold<TruthStep<T, is_any>>{}, plan, x, boolean, AsIs<bool>{});
  };
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return run(Type<bool>{});  // the loads turn any type into bool
  if (x.dtype() == boolean || x.dtype() == uint8) return run(Type<uint8_t>{});
  return dispatch_read(x.dtype(), run);
}

}  // namespace

Tensor reduce_sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("sum", x, dims, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_floating_point_v<T>)
      return reduce_to("sum", Fold<SumStep<T>>{}, plan, x, x.dtype(), Quotient<T>{1});
    else
      return reduce_to("sum", Fold<SumStep<T>>{}, plan, x, int64, AsIs<T>{});
  });
}

Tensor reduce_sum_float64(const Tensor& x, const Dims& dims) {
  const Plan plan = make_plan("sum", x, dims, false);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("sum", Fold<SumStep<T, true>>{}, plan, x, float64, AsIs<double>{});
  });
}

Tensor reduce_mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("mean", x, dims, keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("mean", Fold<SumStep<T>>{}, plan, x, floating_result(x.dtype()),
                     Quotient<T>{static_cast<double>(plan.count)});
  });
}

Tensor reduce_prod(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("prod", x, dims, keepdim);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("prod", Fold<ProductStep<T>>{}, plan, x, dtype, AsIs<T>{});
  });
}

Tensor reduce_logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan plan = make_plan("logsumexp", x, dims, keepdim);
  return dispatch_read_floating(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to("logsumexp", LogSumExp<T>{}, plan, x, floating_result(x.dtype()), LogOfSum<T>{});
  });
}

Tensor reduce_truth(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool is_any) {
  const Plan plan = make_plan(op, x, dims, keepdim);
  return is_any ? truth<true>(op, plan, x) : truth<false>(op, plan, x);
}

}  // namespace pleat::ops
