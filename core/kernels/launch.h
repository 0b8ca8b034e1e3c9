// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/device/cuda.h"

/// Launches of kernels.

#if PLEAT_COMPILES_KERNELS

#include <cuda_runtime.h>

#include "pleat/core/device/check_cuda.h"

namespace pleat {

inline constexpr int block_threads = 256;

/// How many blocks a multiprocessor must be able to run at once; 0: as many as nvcc likes, which rather
/// spills a few registers than have fewer. A functor with `static constexpr bool keeps_registers = true`,
/// for loops that would read what was spilled again and again, has as many registers as there are.
template <class Functor>
inline constexpr int least_blocks = 0;
template <class Functor>
requires(Functor::keeps_registers) inline constexpr int least_blocks<Functor> = 1;

/// Launches `blocks` blocks of threads; none for 0. Throws ValueError for more than a launch can have, 2^31
/// - 1.
template <class... Parameters, class... Args>
void launch_kernel(const char* op, Device device, int64_t blocks, void (*kernel)(Parameters...),
                   const Args&... args) {
  if (blocks == 0) return;
  constexpr int64_t most_blocks = (int64_t{1} << 31) - 1;
  check<ValueError>(blocks <= most_blocks, "{}: needs {} blocks of {} threads, a launch can have {}", op,
                    blocks, block_threads, most_blocks);
  const cuda::DeviceGuard guard(device);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(block_threads);
  config.stream = static_cast<cudaStream_t>(cuda::current_stream(device).native());
  cuda::check_cuda(cudaLaunchKernelEx(&config, kernel, args...), op);
}

template <class Functor>
__global__ void __launch_bounds__(block_threads, least_blocks<Functor>)
    index_kernel(int64_t n, const Functor functor) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i < n) functor(i);
}

/// Calls `functor(i)` for i = 0 ... n-1, each in a thread of its own.
template <class Functor>
void launch_indices(const char* op, Device device, int64_t n, const Functor& functor) {
  launch_kernel(op, device, ceil_div(n, block_threads), &index_kernel<Functor>, n, functor);
}

}  // namespace pleat

#elif PLEAT_WITH_CUDA
#error "only .cu files and those whose first line is // Host and device. can launch kernels"
#else

namespace pleat {

/// Without CUDA it is never called.
template <class Functor>
void launch_indices(const char* op, Device device, int64_t n, const Functor& functor);

}  // namespace pleat

#endif
