#include "pleat/core/device/check_cuda.h"

#include "pleat/core/base/format.h"

namespace pleat::cuda {
namespace {

/// Errors after which every later call in the process fails, too (the runtime's documentation of cudaError_t:
/// "the process must be terminated and relaunched").
bool loses_device(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
      return true;
    default:
      return false;
  }
}

}  // namespace

void fail_cuda(cudaError_t status, const char* op) {
  cudaGetLastError();  // reported here; the next call must not report it again
  const char* name = cudaGetErrorName(status);
  const char* text = cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) fail<OutOfMemoryError>("{}: {} ({})", op, text, name);
  if (loses_device(status))
    fail<DeviceLostError>(
        "{}: {} ({}). Kernels report late, so an earlier operation may be the cause: run with "
        "CUDA_LAUNCH_BLOCKING=1 to see which. This process can use the GPU no longer; start it anew",
        op, text, name);
  fail<DeviceError>("{}: {} ({})", op, text, name);
}

void check_after_failure(const char* op) {
  check_launch(op);
  const cudaError_t status = cudaStreamQuery(nullptr);  // does not wait, and reports a lost device
  cudaGetLastError();
  if (loses_device(status)) fail_cuda(status, op);
}

}  // namespace pleat::cuda
