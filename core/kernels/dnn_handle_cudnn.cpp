#include <cudnn.h>

#include "pleat/core/base/format.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/kernels/handle_pool.h"
#include "pleat/core/memory/allocator.h"

namespace pleat::cuda {
namespace {

struct DnnHandle {
  cudnnHandle_t handle = nullptr;

  DnnHandle() = default;
  DnnHandle(const DnnHandle&) = delete;
  DnnHandle& operator=(const DnnHandle&) = delete;
  /// Of one that could not be made ready; those that could are kept (handle_pool.h).
  ~DnnHandle() {
    if (handle != nullptr) cudnnDestroy(handle);
  }
};

std::unique_ptr<DnnHandle> make(StreamId stream) {
  auto result = std::make_unique<DnnHandle>();
  if (cudnnCreate(&result->handle) != CUDNN_STATUS_SUCCESS) {
    empty_cache(Device(DeviceType::cuda, stream.device));  // it may be the cache that left no room
    check_dnn(cudnnCreate(&result->handle), "cudnnCreate");
  }
  check_dnn(cudnnSetStream(result->handle, static_cast<cudaStream_t>(stream.native)), "cudnnSetStream");
  return result;
}

}  // namespace

cudnnContext* dnn_handle(Device device) {
  const StreamId stream{device.index, current_stream(device).native()};
  return thread_handle<DnnHandle>(stream, make).handle;
}

void check_dnn(int status, const char* op) {
  const auto given = static_cast<cudnnStatus_t>(status);
  if (given == CUDNN_STATUS_SUCCESS) return;
  const char* text = cudnnGetErrorString(given);
  if (given == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      given == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    fail<OutOfMemoryError>("{}: cuDNN: {}", op, text);
  check_after_failure(op);  // more exact when a kernel failed
  fail<DeviceError>("{}: cuDNN {}: {}", op, cudnn_version(), text);
}

int cudnn_version() { return static_cast<int>(cudnnGetVersion()); }

}  // namespace pleat::cuda
