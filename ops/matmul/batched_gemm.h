// Private header: not installed.
#pragma once

#include "pleat/core/base/device.h"
#include "pleat/ops/matmul/gemm.h"

namespace pleat::ops {

/// `batch` products whose matrices lie at equal distances, in elements; a distance of 0 uses one matrix for
/// all. C's must not overlap.
template <class T, class Out = T>
struct GemmBatch {
  Gemm<T, Out> first;
  int64_t batch = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
};

/// Computes the products on the CPU, with `gemm`. T and Out: float, double or int64_t, both the same; or T
/// BFloat16, and Out the same or float.
template <class T, class Out>
void batched_gemm(const GemmBatch<T, Out>& products);

/// The same on a GPU, with cuBLAS in the current stream. T and Out: float, double or int64_t, both the same;
/// or T Half or BFloat16, and Out the same or float. Throws what cuBLAS reports, naming `op`.
template <class T, class Out>
void cublas_gemm(const char* op, Device device, const GemmBatch<T, Out>& products);

}  // namespace pleat::ops
