// Private header: not installed.
#pragma once

#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/reduce/engine.h"
#include "pleat/ops/reduce/fold.h"

/// What the files of ops/reduce share: the choice of the type to compute in, and the plain case of one
/// result.

namespace pleat::ops::reduction {

/// Calls `f(Type<T>{})` with float, double or int64: the types in which numbers are read.
template <class F>
decltype(auto) dispatch_read(DType dtype, F&& f) {
  if (dtype == float64) return f(Type<double>{});
  if (is_floating(dtype)) return f(Type<float>{});
  return f(Type<int64_t>{});
}

/// The same for results that are floating: integers are read as double and give float32.
template <class F>
decltype(auto) dispatch_read_floating(DType dtype, F&& f) {
  if (is_floating(dtype) && dtype != float64) return f(Type<float>{});
  return f(Type<double>{});
}

/// result = finish(state), computed as Out and converted to `dtype`.
template <class Out, class Operation, class Finish>
Tensor reduce_to(const Operation& operation, const Plan& plan, const Tensor& x, DType dtype,
                 const Finish& finish) {
  const Tensor result = empty_result(plan, dtype_of<Out>());
  Out* const out = result.data<Out>();
  reduce(operation, plan, x,
         [&](int64_t at, const typename Operation::State& state) { out[at] = finish(state); });
  return cast(result, dtype);
}

}  // namespace pleat::ops::reduction
