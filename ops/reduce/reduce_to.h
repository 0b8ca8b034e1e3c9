// Private header: not installed.
#pragma once

#include <type_traits>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/reduce/engine.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/read_as.h"
#include "pleat/ops/reduce/reduce_kernel.h"

/// What the files of ops/reduce share: the way from states to results on either device.

namespace pleat::ops::reduction {

/// result = finish(state), converted to `dtype`.
template <class Operation, class Finish>
Tensor reduce_to(const char* op, const Operation& operation, const Plan& plan, const Tensor& x, DType dtype,
                 const Finish& finish) {
  using State = typename Operation::State;
  using Out = std::decay_t<decltype(finish(std::declval<const State&>()))>;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const Tensor result = empty_result(plan, dtype);
      reduce_kernel(op, operation, finish, plan, x, {result, {}});
      return result;
    }
  const Tensor result = empty_result(plan, dtype_of<Out>());
  Out* const out = result.data<Out>();
  reduce(operation, plan, x, [&](int64_t at, const State& state) { out[at] = finish(state); });
  return cast(result, dtype);
}

/// Two results, where `finish` gives a Two.
template <class Operation, class Finish>
Two<Tensor, Tensor> reduce_to_two(const char* op, const Operation& operation, const Plan& plan,
                                  const Tensor& x, DType first_type, DType second_type,
                                  const Finish& finish) {
  using State = typename Operation::State;
  using Values = std::decay_t<decltype(finish(std::declval<const State&>()))>;
  using A = decltype(Values::first);
  using B = decltype(Values::second);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const Two<Tensor, Tensor> results{empty_result(plan, first_type), empty_result(plan, second_type)};
      reduce_kernel(op, operation, finish, plan, x, {results.first, results.second});
      return results;
    }
  const Two<Tensor, Tensor> results{empty_result(plan, dtype_of<A>()), empty_result(plan, dtype_of<B>())};
  A* const a = results.first.data<A>();
  B* const b = results.second.data<B>();
  reduce(operation, plan, x, [&](int64_t at, const State& state) {
    const Values values = finish(state);
    a[at] = values.first;
    b[at] = values.second;
  });
  return {cast(results.first, first_type), cast(results.second, second_type)};
}

}  // namespace pleat::ops::reduction
