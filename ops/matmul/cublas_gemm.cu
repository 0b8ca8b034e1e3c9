#include <algorithm>
#include <limits>
#include <type_traits>

#include <cublas_v2.h>

#include "pleat/core/base/precision.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/ops/matmul/gemm.h"

/// cuBLAS takes column-major matrices only. A row-major matrix read by columns is its transposed, so that C =
/// A B becomes C' = B' A': the operands change places and nothing is copied.

namespace pleat::ops {
namespace {

/// One element of integer products, modulo 2^64.
struct IntegerProduct {
  GemmBatch<int64_t> products;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    const Gemm<int64_t>& p = products.first;
    const int64_t j = index % p.n;
    const int64_t i = index / p.n % p.m;
    const int64_t batch = index / p.n / p.m;
    const int64_t* a = p.a + batch * products.a_step;
    const int64_t* b = p.b + batch * products.b_step;
    int64_t& c = p.c[batch * products.c_step + i * p.ldc + j];
    uint64_t total = 0;
    for (int64_t term = 0; term < p.terms; ++term) {
      for (int64_t l = 0; l < p.k; ++l) {
        const int64_t left = p.transpose_a ? a[l * p.lda + i] : a[i * p.lda + l];
        const int64_t right = p.transpose_b ? b[j * p.ldb + l] : b[l * p.ldb + j];
        total += static_cast<uint64_t>(left) * static_cast<uint64_t>(right);
      }
      a += p.a_term_step;
      b += p.b_term_step;
    }
    total *= static_cast<uint64_t>(p.alpha);
    c = static_cast<int64_t>(total + (p.accumulate ? static_cast<uint64_t>(c) : 0));
  }
};

/// cuBLAS wants every leading dimension to be at least a row of the matrix, also where there is one row only.
int64_t leading(int64_t given, int64_t row) { return std::max(given, std::max<int64_t>(row, 1)); }

template <class T>
constexpr cudaDataType_t data_type() {
  constexpr DType dtype = dtype_of<T>();
  return dtype == float64    ? CUDA_R_64F
         : dtype == float16  ? CUDA_R_16F
         : dtype == bfloat16 ? CUDA_R_16BF
                             : CUDA_R_32F;
}

/// Sums of half types are float32, whatever `float32_precision` is for float32 operands.
template <class T>
cublasComputeType_t compute_type() {
  if constexpr (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  if constexpr (!std::is_same_v<T, float>) return CUBLAS_COMPUTE_32F;
  const Precision precision = float32_precision();
  return precision == Precision::highest ? CUBLAS_COMPUTE_32F
         : precision == Precision::high  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                         : CUBLAS_COMPUTE_32F_FAST_16BF;
}

template <class T, class Out>
void floating_gemm(const char* op, Device device, const GemmBatch<T, Out>& products) {
  using Scale = typename Gemm<T, Out>::Scale;
  const Gemm<T, Out>& p = products.first;
  const int64_t lda = leading(p.lda, p.transpose_a ? p.m : p.k);
  const int64_t ldb = leading(p.ldb, p.transpose_b ? p.k : p.n);
  const int64_t ldc = leading(p.ldc, p.n);
  const Scale alpha = p.k == 0 ? Scale(0) : p.alpha;
  const Scale beta = p.accumulate ? Scale(1) : Scale(0);
  const cuda::DeviceGuard guard(device);
  const cublasStatus_t status = cublasGemmStridedBatchedEx_64(
      cuda::blas_handle(device), p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
      p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p.n, p.m, p.k, &alpha, p.b, data_type<T>(), ldb,
      products.b_step, p.a, data_type<T>(), lda, products.a_step, &beta, p.c, data_type<Out>(), ldc,
      products.c_step, products.batch, compute_type<T>(), CUBLAS_GEMM_DEFAULT);
  cuda::check_blas(status, op);
}

}  // namespace

template <class T, class Out>
void cublas_gemm(const char* op, Device device, const GemmBatch<T, Out>& products) {
  const Gemm<T, Out>& p = products.first;
  if (p.m == 0 || p.n == 0 || products.batch == 0) return;
  if constexpr (std::is_same_v<T, int64_t>) {
    launch_indices(op, device, products.batch * p.m * p.n, IntegerProduct{products});
  } else {
    GemmBatch<T, Out> term = products;  // cuBLAS writes a batch of products, and adds none of them up
    for (int64_t i = 0; i < p.terms; ++i) {
      term.first = term_of(p, i);
      floating_gemm(op, device, term);
    }
  }
}

template void cublas_gemm(const char*, Device, const GemmBatch<float>&);
template void cublas_gemm(const char*, Device, const GemmBatch<double>&);
template void cublas_gemm(const char*, Device, const GemmBatch<int64_t>&);
template void cublas_gemm(const char*, Device, const GemmBatch<Half>&);
template void cublas_gemm(const char*, Device, const GemmBatch<Half, float>&);
template void cublas_gemm(const char*, Device, const GemmBatch<BFloat16>&);
template void cublas_gemm(const char*, Device, const GemmBatch<BFloat16, float>&);

}  // namespace pleat::ops
