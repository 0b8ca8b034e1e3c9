// cuBLAS, as far as Pleat calls it. NVIDIA's documentation of cuBLAS says what each function does and
// refuses.
#include <algorithm>
#include <memory>
#include <vector>

#include "finding.h"
#include "graph.h"
#include "library_handle.h"
#include "memory.h"
#include "number.h"
#include "queue.h"
#include <Eigen/Core>
#include <cublas_v2.h>

using namespace cuda_double;

struct cublasContext : LibraryHandle {};

namespace {

using Guard = std::lock_guard<Lock>;

LibraryHandles<cublasContext>& handles() { return LibraryHandles<cublasContext>::instance(); }

cublasContext& handle_of(cublasHandle_t handle, const char* what) { return handles().get(handle, what); }

bool type_of(cudaDataType_t given, Type& type) {
  switch (given) {
    case CUDA_R_64F:
      type = Type::f64;
      return true;
    case CUDA_R_32F:
      type = Type::f32;
      return true;
    case CUDA_R_16F:
      type = Type::f16;
      return true;
    case CUDA_R_16BF:
      type = Type::bf16;
      return true;
    default:
      return false;
  }
}

/// Elements from the first to the last of a batch of column-major matrices.
int64_t extent(int64_t rows, int64_t columns, int64_t leading, int64_t step, int64_t batch) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * step + (columns - 1) * leading + rows;
}

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// op(A), as it takes part in the product.
template <class T>
Matrix<T> operand(const void* memory, Type type, int64_t first, int64_t leading, int64_t rows,
                  int64_t columns, bool transposed, int mantissa_bits) {
  Matrix<T> result(rows, columns);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) {
      const double value =
          read_number(type, memory, first + (transposed ? r * leading + c : c * leading + r));
      result(r, c) = static_cast<T>(mantissa_bits > 0 ? rounded_to_bits(value, mantissa_bits) : value);
    }
  return result;
}

}  // namespace

int64_t cuda_double::blas_handles() { return handles().count(); }

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const Guard guard(lock());
  if (device_error(current_device()) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (forbidden_while_capturing() != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
  if (fault(&Faults::blas_handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = handles().make();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const Guard guard(lock());
  return handles().destroy(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  const Guard guard(lock());
  if (fault(&Faults::blas_set)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle_of(handle, "cublasSetStream").stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  const Guard guard(lock());
  *stream = handle_of(handle, "cublasGetStream").stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t) {
  const Guard guard(lock());
  if (fault(&Faults::blas_set)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle_of(handle, "cublasSetMathMode");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* memory, size_t bytes) {
  const Guard guard(lock());
  if (fault(&Faults::blas_set)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const cublasContext& own = handle_of(handle, "cublasSetWorkspace");
  if (reinterpret_cast<uintptr_t>(memory) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  require_on_device("cublasSetWorkspace", memory, bytes, own.device);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? 13 : 0;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the requested functionality is not supported";
    default:
      return "another status";
  }
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float* alpha, const float* x, int x_step,
                              float* y, int y_step) {
  const Guard guard(lock());
  cublasContext& own = handle_of(handle, "cublasSaxpy");
  if (x_step < 1 || y_step < 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  const auto reach = [n](int step) {
    return (static_cast<std::size_t>(n - 1) * static_cast<std::size_t>(step) + 1) * 4;
  };
  require_on_device("cublasSaxpy, x", x, reach(x_step), own.device);
  require_on_device("cublasSaxpy, y", y, reach(y_step), own.device);
  ++counted().calls_of_libraries;
  enqueue(stream_of(own.stream), {.what = "cublasSaxpy", .run = [=, factor = *alpha] {
                                    for (int i = 0; i < n; ++i) y[i * y_step] += factor * x[i * x_step];
                                  }});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transpose_a,
                                             cublasOperation_t transpose_b, int64_t m, int64_t n, int64_t k,
                                             const void* alpha, const void* a, cudaDataType a_type,
                                             int64_t lda, long long int a_step, const void* b,
                                             cudaDataType b_type, int64_t ldb, long long int b_step,
                                             const void* beta, void* c, cudaDataType c_type, int64_t ldc,
                                             long long int c_step, int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t) {
  const Guard guard(lock());
  const char* const what = "cublasGemmStridedBatchedEx";
  cublasContext& own = handle_of(handle, what);
  if (device_error(own.device) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (fault(&Faults::blas)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool at = transpose_a != CUBLAS_OP_N, bt = transpose_b != CUBLAS_OP_N;
  Type at_type{}, bt_type{}, ct_type{};
  if (!type_of(a_type, at_type) || !type_of(b_type, bt_type) || !type_of(c_type, ct_type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < std::max<int64_t>(1, at ? k : m) ||
      ldb < std::max<int64_t>(1, bt ? n : k) || ldc < std::max<int64_t>(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  // The table of types in the documentation of cublasGemmEx.
  const bool in_double = compute == CUBLAS_COMPUTE_64F;
  const bool halves = at_type == Type::f16 || at_type == Type::bf16;
  const bool fast = compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16BF;
  if (at_type != bt_type || in_double != (at_type == Type::f64) ||
      (!in_double && !fast && compute != CUBLAS_COMPUTE_32F) || (fast && at_type != Type::f32) ||
      (ct_type != at_type && !(halves && ct_type == Type::f32)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto reach = [](int64_t elements, Type type) {
    return static_cast<std::size_t>(elements) * size_of(type);
  };
  if (k > 0) {
    require_on_device("cublasGemmStridedBatchedEx, A", a,
                      reach(extent(at ? k : m, at ? m : k, lda, a_step, batch), at_type), own.device);
    require_on_device("cublasGemmStridedBatchedEx, B", b,
                      reach(extent(bt ? n : k, bt ? k : n, ldb, b_step, batch), bt_type), own.device);
  }
  require_on_device("cublasGemmStridedBatchedEx, C", c, reach(extent(m, n, ldc, c_step, batch), ct_type),
                    own.device);
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  ++counted().calls_of_libraries;
  const double al =
      in_double ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha));
  const double be =
      in_double ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  const int bits = compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? 10
                   : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 7
                                                             : 0;
  enqueue(stream_of(own.stream),
          {.what = what, .run = [=] {
             const auto multiply = [&]<class T>(T) {
               for (int64_t i = 0; i < batch; ++i) {
                 const Matrix<T> left = operand<T>(a, at_type, i * a_step, lda, m, k, at, bits);
                 const Matrix<T> right = operand<T>(b, bt_type, i * b_step, ldb, k, n, bt, bits);
                 const Matrix<T> product = left * right;
                 for (int64_t column = 0; column < n; ++column)
                   for (int64_t row = 0; row < m; ++row) {
                     const int64_t to = i * c_step + column * ldc + row;
                     double value = al * static_cast<double>(product(row, column));
                     // What was there is not read when it counts for nothing: it may be NaN.
                     if (be != 0) value += be * read_number(ct_type, c, to);
                     write_number(ct_type, c, to, value);
                   }
               }
             };
             if (in_double)
               multiply(double{});
             else
               multiply(float{});
           }});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
