// Private header: not installed.
#pragma once

#include <cuda_runtime_api.h>

/// Only for files that are compiled with CUDA.

namespace pleat::cuda {

/// Throws what a failed CUDA call amounts to: OutOfMemoryError; DeviceLostError when the process can use the
/// device no longer; else DeviceError.
[[noreturn, gnu::cold]] void fail_cuda(cudaError_t status, const char* op);

/// `op` is what the user called, as in all messages.
inline void check_cuda(cudaError_t status, const char* op) {
  if (status != cudaSuccess) [[unlikely]]
    fail_cuda(status, op);
}

/// For after a failure of another library: throws when CUDA itself has an error, in the current device, too,
/// that the library may have met before this runtime did.
void check_after_failure(const char* op);

/// For right after a kernel launch.
inline void check_launch(const char* op) { check_cuda(cudaGetLastError(), op); }

}  // namespace pleat::cuda
