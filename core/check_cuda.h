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

/// For right after a kernel launch.
inline void check_launch(const char* op) { check_cuda(cudaGetLastError(), op); }

}  // namespace pleat::cuda
