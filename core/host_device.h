// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/parallel.h"

/// Who compiles a .cu file: nvcc, twice (once for the GPU); the C++ compiler for the double of CUDA
/// (tests/cuda_double), once for all; or the C++ compiler for the CPU alone.
///   PLEAT_COMPILES_KERNELS  whether there are kernels in this build
///   PLEAT_DEVICE_CODE       whether this is compiled to run on a device
#if defined(__CUDACC__) || defined(PLEAT_CUDA_DOUBLE)
#define PLEAT_COMPILES_KERNELS 1
#else
#define PLEAT_COMPILES_KERNELS 0
#endif
#if defined(__CUDA_ARCH__) || defined(PLEAT_CUDA_DOUBLE)
#define PLEAT_DEVICE_CODE 1
#else
#define PLEAT_DEVICE_CODE 0
#endif

/// Marks the call operators whose index arithmetic CPU and GPU share.
#if defined(__CUDACC__)
#define PLEAT_HOST_DEVICE __host__ __device__
#else
#define PLEAT_HOST_DEVICE
#endif

/// Before a loop over an array that each thread has for itself: such an array is in registers only where the
/// compiler knows every index, else in local memory, which is far away (tests/local_memory.py).
#if defined(__CUDA_ARCH__)
#define PLEAT_UNROLL _Pragma("unroll")
#else
#define PLEAT_UNROLL
#endif

namespace pleat {

/// Calls `functor(i)` for i = 0 ... n-1 over the CPU's threads: the reference run of what a GPU spreads over
/// its grid.
template <class Functor>
void for_each_index(int64_t n, const Functor& functor, int64_t grain = 1024) {
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) functor(i);
  });
}

}  // namespace pleat
