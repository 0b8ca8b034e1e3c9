#include <array>

#include <cublas_v2.h>

#include "pleat/core/base/format.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/kernels/handle_pool.h"
#include "pleat/core/memory/allocator.h"

namespace pleat::cuda {
namespace {

constexpr int64_t mebi = 1 << 20;

struct BlasHandle {
  cublasHandle_t handle = nullptr;
  std::shared_ptr<std::byte> workspace;

  BlasHandle() = default;
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  /// Of one that could not be made ready; those that could are kept (handle_pool.h).
  ~BlasHandle() {
    if (handle != nullptr) cublasDestroy(handle);
  }
};

std::unique_ptr<BlasHandle> make(StreamId stream) {
  const Device device(DeviceType::cuda, stream.device);
  auto result = std::make_unique<BlasHandle>();
  cublasStatus_t status = cublasCreate(&result->handle);
  if (status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED) {
    empty_cache(device);  // it may be the cache that left no room
    status = cublasCreate(&result->handle);
  }
  check_blas(status, "cublasCreate");
  check_blas(cublasSetStream(result->handle, static_cast<cudaStream_t>(stream.native)), "cublasSetStream");
  // Products of half types are added up in float32 in every kernel.
  check_blas(cublasSetMathMode(result->handle,
                               static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                         CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
             "cublasSetMathMode");
  // Its own workspace would not be in the allocator's figures. The sizes are those that the documentation of
  // cublasSetWorkspace recommends. After the stream: setting that puts the default workspace back.
  const int64_t bytes = (properties(device).major >= 9 ? 32 : 4) * mebi;
  result->workspace = allocate(bytes, device);
  check_blas(cublasSetWorkspace(result->handle, result->workspace.get(), static_cast<std::size_t>(bytes)),
             "cublasSetWorkspace");
  return result;
}

}  // namespace

cublasContext* blas_handle(Device device) {
  const StreamId stream{device.index, current_stream(device).native()};
  return thread_handle<BlasHandle>(stream, make).handle;
}

void check_blas(int status, const char* op) {
  const auto given = static_cast<cublasStatus_t>(status);
  if (given == CUBLAS_STATUS_SUCCESS) return;
  const char* text = cublasGetStatusString(given);
  if (given == CUBLAS_STATUS_ALLOC_FAILED) fail<OutOfMemoryError>("{}: cuBLAS: {}", op, text);
  check_after_failure(op);  // more exact when a kernel failed
  fail<DeviceError>("{}: cuBLAS: {}", op, text);
}

Versions versions() {
  Versions result;
  check_cuda(cudaRuntimeGetVersion(&result.runtime), "versions");
  check_cuda(cudaDriverGetVersion(&result.driver), "versions");
  std::array<int, 3> cublas{};
  for (int i = 0; i < 3; ++i)
    cublasGetProperty(static_cast<libraryPropertyType>(i), &cublas[static_cast<std::size_t>(i)]);
  result.cublas = cublas[0] * 10000 + cublas[1] * 100 + cublas[2];
  result.cudnn = cudnn_version();
  return result;
}

}  // namespace pleat::cuda
