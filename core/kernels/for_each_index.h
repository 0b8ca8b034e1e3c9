// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/device.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/parallel/parallel.h"

namespace pleat {

/// Calls `functor(i)` for i = 0 ... n-1, in any order: as a kernel on the device's current stream, or on the
/// CPU's threads, each of which takes at least `grain` of them. There `functor.run(first, last)`, if there is
/// one, is called for many of them instead.
template <class Functor>
void for_each_index(const char* op, Device device, int64_t n, const Functor& functor, int64_t grain = 1024) {
  if constexpr (with_cuda)
    if (device.is_cuda()) return launch_indices(op, device, n, functor);
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    const Functor f = functor;  // whose members may stay in registers
    if constexpr (requires { f.run(first, last); }) {
      f.run(first, last);
    } else {
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) f(i);
    }
  });
}

}  // namespace pleat
