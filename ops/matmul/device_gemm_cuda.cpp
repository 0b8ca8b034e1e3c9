#include <algorithm>
#include <limits>
#include <type_traits>

#include <cublas_v2.h>

#include "pleat/core/cuda.h"
#include "pleat/core/cuda_handles.h"
#include "pleat/core/precision.h"
#include "pleat/ops/matmul/device_gemm.h"

/// cuBLAS knows column-major matrices only. A row-major matrix read by columns is its transposed, so that C =
/// A B becomes C' = B' A': the operands change places and nothing is copied.

namespace pleat::ops {
namespace {

/// cuBLAS wants every leading dimension to be at least a row of the matrix, also where there is one row only.
int64_t leading(int64_t given, int64_t row) { return std::max(given, std::max<int64_t>(row, 1)); }

cublasComputeType_t compute_type(Precision precision) {
  switch (precision) {
    case Precision::highest:
      return CUBLAS_COMPUTE_32F;
    case Precision::high:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::medium:
      break;
  }
  return CUBLAS_COMPUTE_32F_FAST_16BF;
}

template <class T>
void multiply(const char* op, Device device, const GemmBatch<T>& products) {
  const Gemm<T>& p = products.first;
  if (p.m == 0 || p.n == 0 || products.batch == 0) return;
  const int64_t lda = leading(p.lda, p.transpose_a ? p.m : p.k);
  const int64_t ldb = leading(p.ldb, p.transpose_b ? p.k : p.n);
  const int64_t ldc = leading(p.ldc, p.n);
  constexpr bool is_double = std::is_same_v<T, double>;
  const cudaDataType_t type = is_double ? CUDA_R_64F : CUDA_R_32F;
  const cublasComputeType_t compute = is_double ? CUBLAS_COMPUTE_64F : compute_type(float32_precision());
  const T alpha = p.k == 0 ? T(0) : p.alpha;
  const T beta = p.accumulate ? T(1) : T(0);
  const cuda::DeviceGuard guard(device);
  const cublasStatus_t status =
      cublasGemmStridedBatchedEx_64(cuda::blas_handle(device), p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                    p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p.n, p.m, p.k, &alpha, p.b,
                                    type, ldb, products.b_step, p.a, type, lda, products.a_step, &beta, p.c,
                                    type, ldc, products.c_step, products.batch, compute, CUBLAS_GEMM_DEFAULT);
  cuda::check_blas(status, op);
}

}  // namespace

void cublas_gemm(const char* op, Device device, const GemmBatch<float>& products) {
  multiply(op, device, products);
}
void cublas_gemm(const char* op, Device device, const GemmBatch<double>& products) {
  multiply(op, device, products);
}

}  // namespace pleat::ops
