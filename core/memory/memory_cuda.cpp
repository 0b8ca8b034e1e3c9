#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/cuda_memory.h"

namespace pleat::cuda {
namespace {

/// nullptr when there is no more memory, which is for the cache to say.
std::byte* allocated(void* memory, cudaError_t status) {
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check_cuda(status, "allocate");
  return static_cast<std::byte*>(memory);
}

/// Allocations are no part of a graph, and do no harm to one that is captured.
class AllowedInCapture {
 public:
  AllowedInCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~AllowedInCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  AllowedInCapture(const AllowedInCapture&) = delete;
  AllowedInCapture& operator=(const AllowedInCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

RawMemory::Event CudaEvents::record(StreamId stream) {
  const DeviceGuard guard({DeviceType::cuda, stream.device});
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "record_stream");
  const cudaError_t status = cudaEventRecord(event, static_cast<cudaStream_t>(stream.native));
  if (status != cudaSuccess) {
    cudaEventDestroy(event);
    fail_cuda(status, "record_stream");
  }
  return event;
}

bool CudaEvents::is_done(Event event) {
  if (is_capturing()) return false;  // asking would end the capture
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(status, "allocate");
  return true;
}

void CudaEvents::wait(Event event) {
  check_cuda(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "allocate");
}
bool CudaEvents::is_capturing() const { return Capture::current() != nullptr; }
void CudaEvents::destroy(Event event) noexcept { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }

std::byte* GpuMemory::allocate(int64_t bytes) {
  const DeviceGuard guard(device_);
  const AllowedInCapture allowed;
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  return allocated(memory, status);
}

// Nothing here may throw, and at the end of a process nothing need succeed.
void GpuMemory::free(std::byte* memory) noexcept {
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(device_.index);
  cudaFree(memory);
  cudaSetDevice(previous);
  cudaGetLastError();
}

void GpuMemory::report(const std::byte* memory, int64_t bytes) noexcept {
  if (is_recording()) record_memory(memory, bytes, device_);
}

std::string GpuMemory::name() const { return pleat::name(device_); }

std::string GpuMemory::state() const {
  const MemoryInfo memory = memory_info(device_);
  return fmt::format("the device has {}, of which {} are free", text_of_bytes(memory.total),
                     text_of_bytes(memory.free));
}

std::byte* PinnedMemory::allocate(int64_t bytes) {
  const AllowedInCapture allowed;
  void* memory = nullptr;
  const cudaError_t status = cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocPortable);
  return allocated(memory, status);
}

void PinnedMemory::free(std::byte* memory) noexcept {
  cudaFreeHost(memory);
  cudaGetLastError();
}

}  // namespace pleat::cuda
