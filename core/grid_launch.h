// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "pleat/core/check_cuda.h"
#include "pleat/core/checked_math.h"
#include "pleat/core/cuda.h"

namespace pleat {

/// What grid.h needs of CUDA; only nvcc understands it.

inline constexpr int threads_per_block = 256;

/// How many blocks a multiprocessor must be able to run at once; 0: as many as nvcc likes, which rather
/// spills a few registers than have fewer. A functor with `static constexpr bool keeps_registers = true`,
/// for loops that would read what was spilled again and again, has as many registers as there are.
template <class Functor>
inline constexpr int least_blocks = 0;
template <class Functor>
requires(Functor::keeps_registers) inline constexpr int least_blocks<Functor> = 1;

template <class Functor>
__global__ void __launch_bounds__(threads_per_block, least_blocks<Functor>)
    grid_kernel(int64_t n, const Functor functor) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) functor(i);
}

/// Launches `blocks` blocks of threads, or as many as a grid can have.
template <class... Parameters, class... Args>
void launch_blocks(const char* op, Device device, int64_t blocks, void (*kernel)(Parameters...),
                   const Args&... args) {
  constexpr int64_t most_blocks = (int64_t{1} << 31) - 1;
  const cuda::DeviceGuard guard(device);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, most_blocks)));
  config.blockDim = dim3(threads_per_block);
  config.stream = static_cast<cudaStream_t>(cuda::current_stream(device).native());
  cuda::check_cuda(cudaLaunchKernelEx(&config, kernel, args...), op);
}

template <class Functor>
void launch_grid(const char* op, Device device, int64_t n, const Functor& functor) {
  launch_blocks(op, device, ceil_div(n, threads_per_block), &grid_kernel<Functor>, n, functor);
}

}  // namespace pleat
