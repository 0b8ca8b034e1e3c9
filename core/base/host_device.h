// Private header: not installed.
#pragma once

#include "pleat/core/base/device_function.h"

/// What files have in common that are compiled for the CPU and for a GPU.
///
/// A file whose first line is "// Host and device." has functors that both run. Without CUDA the C++ compiler
/// compiles it; with CUDA nvcc does, once for the CPU and once for the GPU; for the double of CUDA
/// (tests/cuda_double) the C++ compiler does, once for both. The same holds for .cu files, which have kernels
/// only and belong to builds with CUDA.
///
///   with_cuda               whether this is a build with CUDA, or with the double of it
///   PLEAT_COMPILES_KERNELS  whether this file is compiled in one of the last two ways
///   PLEAT_DEVICE_CODE       whether this pass is for the GPU
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

/// Before a loop over an array that each thread has for itself: such an array is in registers only where the
/// compiler knows every index, else in local memory, which is slow (tests/local_memory.py).
#if defined(__CUDA_ARCH__)
#define PLEAT_UNROLL _Pragma("unroll")
#else
#define PLEAT_UNROLL
#endif
/// Before a loop of few rounds that nvcc would write out many times.
#if defined(__CUDA_ARCH__)
#define PLEAT_ROLLED _Pragma("unroll 1")
#else
#define PLEAT_ROLLED
#endif

namespace pleat {

/// Functions that launch kernels exist in builds with CUDA only, so their calls stand where a build without
/// it does not look (in a generic lambda: inside it, since g++ compiles one that is called from there):
///
///   if constexpr (with_cuda)
///     if (x.device().is_cuda()) return softmax_cuda(y, x, dim);
inline constexpr bool with_cuda = PLEAT_WITH_CUDA;

}  // namespace pleat
