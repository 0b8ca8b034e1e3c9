// Private header: not installed.
#pragma once

#include "pleat/core/device.h"
#include "pleat/ops/matmul/gemm.h"

namespace pleat::ops {

/// `batch` products whose matrices lie at equal distances, in elements; a distance of 0 uses one matrix for
/// all. C's must not overlap.
template <class T>
struct GemmBatch {
  Gemm<T> first;
  int64_t batch = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
};

/// Computes the products where their matrices lie: on the CPU with gemm, on CUDA with cuBLAS in the current
/// stream. Throws what cuBLAS reports, naming `op`.
void device_gemm(const char* op, Device device, const GemmBatch<float>& products);
void device_gemm(const char* op, Device device, const GemmBatch<double>& products);
void device_gemm(const char* op, Device device, const GemmBatch<int64_t>& products);

/// The same on a CUDA device; a build without CUDA throws DeviceError.
void cublas_gemm(const char* op, Device device, const GemmBatch<float>& products);
void cublas_gemm(const char* op, Device device, const GemmBatch<double>& products);

}  // namespace pleat::ops
