// Private header: not installed.
#pragma once

#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/matmul/gemm.h"

/// The types in which convolutions on a GPU keep elements and sums: half types are read and written as they
/// are, their sums are float.

namespace pleat::ops::cuda_conv {

/// Begins the messages of launches.
inline constexpr const char* op = "conv";

/// The type in which elements of type T are added up.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// Bytes of an element of the problem, and of its sums.
inline int64_t element_bytes(const ConvProblem& p) { return size_of(p.dtype); }
inline int64_t sum_bytes(const ConvProblem& p) { return size_of(compute_dtype(p.dtype)); }

template <class T>
Tensor scratch_on(Device device, int64_t elements) {
  return empty({elements}, {.dtype = dtype_of<T>(), .device = device});
}

/// Calls `f(Type<T>{})` with the type of a problem's tensors.
template <class F>
void by_stored_type(const ConvProblem& problem, F f) {
  switch (problem.dtype) {
    case float64:
      return f(Type<double>{});
    case float16:
      return f(Type<Half>{});
    case bfloat16:
      return f(Type<BFloat16>{});
    default:
      return f(Type<float>{});
  }
}

}  // namespace pleat::ops::cuda_conv
