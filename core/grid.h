// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/device.h"
#include "pleat/core/host_device.h"

#if PLEAT_COMPILES_KERNELS
#include "pleat/core/grid_launch.h"
#endif

/// Work that is written once for CUDA and CPU: a functor that is called with the index of a thread. On CUDA
/// it runs over a grid; on the CPU the pool's threads run it while a ForceGrid lives, which is how a machine
/// without a GPU tests what the GPU will do. Included by sources that end in .cu: nvcc compiles them in a
/// build with CUDA, the C++ compiler in one without.

namespace pleat {

/// Whether operations on the device go over a grid.
bool uses_grid(Device device);

/// While one lives, operations on the CPU take the way they would take on CUDA, in all threads.
class ForceGrid {
 public:
  ForceGrid();
  ~ForceGrid();
  ForceGrid(const ForceGrid&) = delete;
  ForceGrid& operator=(const ForceGrid&) = delete;
};

/// Calls `functor(i)` for i = 0 ... n-1, in any order, on the device's current stream. On the CPU a thread
/// takes at least `grain` of them.
template <class Functor>
void grid_for(const char* op, Device device, int64_t n, const Functor& functor, int64_t grain = 1024) {
  if (n == 0) return;
#if PLEAT_COMPILES_KERNELS
  if (device.is_cuda()) return launch_grid(op, device, n, functor);
#endif
  (void)op;
  (void)device;
  for_each_index(n, functor, grain);
}

}  // namespace pleat
