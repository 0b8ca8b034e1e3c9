#pragma once

/// Marks functions that CPU and GPU share, in files that nvcc compiles; others see plain functions.
#if defined(__CUDACC__)
#define PLEAT_HOST_DEVICE __host__ __device__
#else
#define PLEAT_HOST_DEVICE
#endif
