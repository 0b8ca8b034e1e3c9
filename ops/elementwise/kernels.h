// Private header: not installed.
#pragma once

#include <array>
#include <type_traits>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/coarse_float.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/types.h"

/// How an elementwise operation is written: a functor over single elements, which CPU and GPU share, for
/// files whose first line is "Host and device". It is instantiated for the types it computes in. On the CPU
/// it is mapped over plain arrays by a loop that the compiler vectorises (so the functor should choose
/// between values rather than branch). Every lane and every rest of a vector runs the same arithmetic: the
/// bits of a result do not depend on where an element lies or on how threads share the work, as they would
/// with Eigen's packet functions. Half types are computed in float32 (both loops convert), so there are no
/// kernels for them.

namespace pleat::ops {

/// Kernels read bools as the bytes they are: loops that choose by a byte are vectorised, by a bool they are
/// not.
template <class T>
const T* readable(const T* data) {
  return data;
}
inline const uint8_t* readable(const bool* data) { return reinterpret_cast<const uint8_t*>(data); }
template <class T>
Repeated<Seen<T>> readable(Repeated<T> data) {
  return {seen(data.value)};
}

/// Base of formulas that are computed in vmath::CoarseFloat on the CPU where the result is bfloat16.
struct CoarseInBFloat16 {};
template <class F>
inline constexpr bool is_coarse = std::is_base_of_v<CoarseInBFloat16, F>;

template <class F, std::size_t N>
void map_coarse(const char* op, const Tensor& out, const std::array<Tensor, N>& in, const F& f) {
  const auto coarse = [f](auto... x) __attribute__((always_inline)) {
    return f(vmath::CoarseFloat(x)...).value;
  };
  const auto run = [&coarse](float* y, int64_t n, auto... p) { map_inputs(y, n, coarse, p...); };
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    elementwise<float, InputOf<F, float, K>...>(op, out, in, run);
  }
  (std::make_index_sequence<N>{});
}

/// out = f(in...) computed in the one of `Types` that fits `dtype`: each input is seen as that type (inputs
/// that are masks as uint8_t, 0 or 1), and f gives an element of the same type, or a bool where Result is
/// Truth. Half types are seen as float. Throws DTypeError when `Types` has none for `dtype`, else what
/// make_elementwise_loop does.
template <class Types, class Result = Same, class F, std::size_t N>
void map_into(const char* op, DType dtype, const Tensor& out, const std::array<Tensor, N>& in, const F& f) {
  check_types<Types>(op, dtype);
  if constexpr (is_coarse<F>)
    if (dtype == bfloat16 && out.device().is_cpu()) return map_coarse(op, out, in, f);
  Types::dispatch(dtype, [&]<class T>(Type<T>) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      if constexpr (with_cuda)
        if (out.device().is_cuda())
          return elementwise_kernel<OutputOf<Result, T>, InputOf<F, T, K>...>(op, out, in, f);
      using Out = OutputOf<Result, T>;
      const auto run = [&f](Out* y, int64_t n, auto... p) { map_inputs(y, n, f, readable(p)...); };
      if constexpr (std::is_base_of_v<MemoryBound, F>)  // also for operands that do not change along a run
        elementwise<Out, InputOf<F, T, K>...>(op, out, in, run);
      else
        elementwise<Out, InputOf<F, T, K>...>(
            op, out, in, [&run](Out* y, int64_t n, const InputOf<F, T, K>*... p) { run(y, n, p...); });
    }
    (std::make_index_sequence<N>{});
  });
}

/// A new tensor for the result of the inputs, in their memory order.
inline Tensor unary_result(const Tensor& x, DType dtype) {
  const std::array inputs = {x};
  return empty_as(inputs, x.shape(), dtype);
}
inline Tensor binary_result(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  const std::array inputs = {a, b};
  return empty_as(inputs, broadcast(a.shape(), b.shape(), op), dtype);
}

/// f(x) in floating arithmetic: integers become float32.
template <class F>
Tensor unary_floating(const char* op, const Tensor& x, const F& f) {
  check_types<Floating>(op, floating_result(x.dtype()));
  const Tensor out = unary_result(x, floating_result(x.dtype()));
  map_into<Floating>(op, out.dtype(), out, std::array{x}, f);
  return out;
}

/// f(x) in x's own type.
template <class F>
Tensor unary_number(const char* op, const Tensor& x, const F& f) {
  check_types<Numbers>(op, x.dtype());
  const Tensor out = unary_result(x, x.dtype());
  map_into<Numbers>(op, x.dtype(), out, std::array{x}, f);
  return out;
}

/// f(a, b) in the promoted type of a and b.
template <class F>
void binary_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  const RecordOp range(op, a, b);
  map_into<Numbers>(op, promote(a.dtype(), b.dtype()), out, std::array{a, b}, f);
}
template <class F>
Tensor binary(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Tensor out = binary_result(op, a, b, promote(a.dtype(), b.dtype()));
  map_into<Numbers>(op, out.dtype(), out, std::array{a, b}, f);
  return out;
}

/// f(a, b) in the promoted floating type of a and b: integers are computed in float32.
template <class F>
void binary_floating_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  const RecordOp range(op, a, b);
  map_into<Floating>(op, floating_result(promote(a.dtype(), b.dtype())), out, std::array{a, b}, f);
}
template <class F>
Tensor binary_floating(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Tensor out = binary_result(op, a, b, floating_result(promote(a.dtype(), b.dtype())));
  map_into<Floating>(op, out.dtype(), out, std::array{a, b}, f);
  return out;
}

}  // namespace pleat::ops
