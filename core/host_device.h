// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/parallel.h"

/// Marks the call operators whose index arithmetic CPU and GPU share: compiled for both by nvcc, plain C++
/// otherwise.
#if defined(__CUDACC__)
#define PLEAT_HOST_DEVICE __host__ __device__
#else
#define PLEAT_HOST_DEVICE
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
