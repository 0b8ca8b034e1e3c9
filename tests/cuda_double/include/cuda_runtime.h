#pragma once

// What nvcc adds to C++ for kernels, for a C++ compiler: threads of a block are those of block.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "pleat/tests/cuda_double/block.h"
#include "pleat/tests/cuda_double/launch.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

// Where a call stands in the source: its address in the program would not do, since the compiler may copy it,
// and threads that come by different copies meet.
#define PLEAT_DOUBLE_SITE        \
  ([]() -> const void* {         \
    static const char place = 0; \
    return &place;               \
  }())
#define __syncthreads() ::cuda_double::meet_block(PLEAT_DOUBLE_SITE)
#define __shfl_sync(...) ::cuda_double::shuffle(PLEAT_DOUBLE_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) ::cuda_double::shuffle_down(PLEAT_DOUBLE_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) ::cuda_double::shuffle_up(PLEAT_DOUBLE_SITE, __VA_ARGS__)

namespace cuda_double {

/// threadIdx and its kin: read where a thread runs.
template <class Vector, Vector ThreadPlace::*which>
struct Place {
  template <unsigned Vector::*axis>
  struct Axis {
    operator unsigned() const { return place().*which.*axis; }
  };
  Axis<&Vector::x> x;
  Axis<&Vector::y> y;
  Axis<&Vector::z> z;
};

/// Of warps of 32: what lane `lane` of the thread's group of `width` gives.
inline unsigned shuffle(const void* site, unsigned mask, unsigned word, int lane, int width = 32) {
  const int own = static_cast<int>(place().thread.x) % 32;
  return exchange_in_warp(mask, word, own / width * width + lane % width, site);
}
/// What the thread `delta` further gives, or that `delta` before it; past the ends of the group a thread's
/// own.
inline unsigned shuffle_by(const void* site, unsigned mask, unsigned word, int delta, int width) {
  const int own = static_cast<int>(place().thread.x) % 32;
  const int lane = own + delta;
  const bool inside = lane >= own / width * width && lane < (own / width + 1) * width;
  return exchange_in_warp(mask, word, inside ? lane : own, site);
}
inline unsigned shuffle_down(const void* site, unsigned mask, unsigned word, unsigned delta, int width = 32) {
  return shuffle_by(site, mask, word, static_cast<int>(delta), width);
}
inline unsigned shuffle_up(const void* site, unsigned mask, unsigned word, unsigned delta, int width = 32) {
  return shuffle_by(site, mask, word, -static_cast<int>(delta), width);
}

}  // namespace cuda_double

/// Blocks run one after the other, so that nothing comes between.
inline unsigned atomicInc(unsigned* address, unsigned most) {
  const unsigned old = *address;
  *address = old >= most ? 0 : old + 1;
  return old;
}
inline void __threadfence() {}

inline constexpr cuda_double::Place<uint3, &cuda_double::ThreadPlace::thread> threadIdx;
inline constexpr cuda_double::Place<uint3, &cuda_double::ThreadPlace::block> blockIdx;
inline constexpr cuda_double::Place<dim3, &cuda_double::ThreadPlace::threads> blockDim;
inline constexpr cuda_double::Place<dim3, &cuda_double::ThreadPlace::blocks> gridDim;

template <class... Expected, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Given&&... given) {
  using Arguments = std::tuple<std::decay_t<Expected>...>;
  static_assert((std::is_trivially_copyable_v<std::decay_t<Expected>> && ...),
                "arguments of a kernel are copied byte by byte");
  const std::string name = cuda_double::kernel_name(__PRETTY_FUNCTION__);
  const auto thread = [kernel, arguments = Arguments(static_cast<std::decay_t<Expected>>(given)...)] {
    std::apply(kernel, arguments);
  };
  return cuda_double::launch(*config, name, sizeof(Arguments),
                             [name, thread, blocks = config->gridDim, threads = config->blockDim] {
                               cuda_double::run_grid(name, blocks, threads, thread);
                             });
}
