// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <cuda_runtime_api.h>

#include "pleat/core/base/error.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops {

/// Throws ValueError where CUB counts in int and would see another number: before CCCL 3, of CUDA 13, some of
/// its functions do (github.com/NVIDIA/cccl/pull/3308).
inline void check_cub_size(const char* op, int64_t n) {
#if defined(CUB_VERSION) && CUB_VERSION < 300000
  check<ValueError>(
      n <= std::numeric_limits<int32_t>::max(),
      "{}: CUB of CUDA 12 orders 2147483647 elements at most, got {}; that of CUDA 13 has no limit", op, n);
#else
  static_cast<void>(op), static_cast<void>(n);
#endif
}

/// Calls `algorithm(memory, bytes, stream)`, one of CUB's, with the temporary memory that it requests. Only
/// for what nvcc compiles.
template <class Algorithm>
void cub_call(const char* op, Device device, const Algorithm& algorithm) {
  const cuda::DeviceGuard guard(device);
  const cuda::Stream stream = cuda::current_stream(device);
  const auto native = static_cast<cudaStream_t>(stream.native());
  std::size_t bytes = 0;
  cuda::check_cuda(algorithm(static_cast<void*>(nullptr), bytes, native), op);
  // CUB takes a null pointer for the question how much it needs.
  const Tensor memory =
      empty({static_cast<int64_t>(bytes == 0 ? 1 : bytes)}, {.dtype = uint8, .device = device});
  cuda::check_cuda(algorithm(static_cast<void*>(memory.raw()), bytes, native), op);
}

}  // namespace pleat::ops
