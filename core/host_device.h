// Private header: not installed.
#pragma once

/// Marks the call operators whose index arithmetic CPU and GPU share: compiled for both by nvcc, plain C++
/// otherwise.
#if defined(__CUDACC__)
#define PLEAT_HOST_DEVICE __host__ __device__
#else
#define PLEAT_HOST_DEVICE
#endif
