// Private header: not installed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/device/capture.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/update/update_kernel.h"

/// Many tensors changed in place by one formula: the step of an optimiser.

namespace pleat::ops {

namespace detail {

/// `f` is a copy so that its constants may stay in registers.
template <class T, class F, class... State>
void update_arrays(F f, int64_t n, T* p, State*... states) {
  if constexpr (requires { f.update_array(n, p, states...); }) {
    f.update_array(n, p, states...);
  } else {
    // The tensors of one update lie apart: iterations are independent.
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) f(p[i], states[i]...);
  }
}

/// What runs an update whose functor sees elements of T.
template <class T, class F>
void update_kernel_on_cpu(const void* context, std::byte* const* arrays, int64_t n) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    update_arrays(*static_cast<const F*>(context), n, reinterpret_cast<T*>(arrays[K])...);
  }
  (std::make_index_sequence<F::operands>{});
}

/// One pass over memory for all updates.
template <class F>
void update_on_cpu(const char* op, const std::vector<const Update<F>*>& updates) {
  std::vector<F> functors;
  std::vector<std::array<Operand, F::operands>> operands;
  std::vector<ElementwiseCall> calls;
  functors.reserve(updates.size());  // calls refer to them
  operands.reserve(updates.size());
  for (const Update<F>* update : updates) {
    const StepCount& count = update->count;
    if (count.found != nullptr && *count.found != 0) continue;
    F& f = functors.emplace_back(update->f);
    if constexpr (GoesByStep<F>) f.at_step(count.before + 1 + (count.made != nullptr ? *count.made : 0));
    dispatch_floating(op, update->tensors[0].dtype(), [&]<class T>(Type<T>) {
      operands.push_back(update_operands<T>(*update));
      calls.push_back({operands.back(), {update_kernel_on_cpu<T, F>, &f}});
    });
  }
  elementwise_loops(op, calls);
  for (const Update<F>* update : updates)
    if (const StepCount& count = update->count;
        count.made != nullptr && (count.found == nullptr || *count.found == 0))
      ++*count.made;
}

}  // namespace detail

/// Makes each update that is not left out (step_count.h): calls its functor for each element of its tensors,
/// with T = float (double where the first tensor is float64). On the CPU that is one parallel pass over all
/// of them, on a GPU one launch, and one before it where functors go by the number of a step that only the
/// device has. Tensors of one update have one shape, any strides and floating types; those that are changed
/// share memory with no other. For files whose first line is "Host and device". Throws DTypeError unless the
/// first tensors are floating, else what make_elementwise_loop does.
template <class F>
void update(const std::string& op, const std::vector<Update<F>>& updates) {
  const RecordOp range(op.c_str(), ".update");
  std::vector<const Update<F>*> on_cpu, on_gpu;
  for (const Update<F>& one : updates) {
    check_types<Floating>(op.c_str(), one.tensors[0].dtype());
    if (one.tensors[0].device().is_cuda())
      on_gpu.push_back(&one);
    else if (const Capture* capture = Capture::current())
      capture->refuse(op.c_str(), "it changes tensors on the CPU");
    else
      on_cpu.push_back(&one);
  }
  if (!on_cpu.empty()) detail::update_on_cpu(op.c_str(), on_cpu);
  if constexpr (with_cuda)
    if (!on_gpu.empty()) update_kernel(op.c_str(), std::move(on_gpu));
}

}  // namespace pleat::ops
