// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pleat/core/grid_launch.h"

/// A block of grid_block.h on a GPU; only nvcc understands it.

namespace pleat {

namespace detail {

inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr int warp_threads = 32;

/// `move(word)` applied to the 32-bit words of x.
template <class T, class Move>
__device__ T moved_words(const T& x, const Move& move) {
  constexpr std::size_t words = (sizeof(T) + 3) / 4;
  unsigned word[words] = {};
  std::memcpy(word, &x, sizeof(T));
  PLEAT_UNROLL
  for (std::size_t i = 0; i < words; ++i) word[i] = move(word[i]);
  T y;
  std::memcpy(&y, word, sizeof(T));
  return y;
}

}  // namespace detail

/// Shared memory of a block: one T for each thread. Every read and write of shared memory goes through here,
/// where the double of CUDA watches them.
template <class T>
class SharedArray {
 public:
  __device__ T read(int i) const {
    watch(i, false);
    return memory()[i];
  }
  __device__ void write(int i, const T& value) const {
    watch(i, true);
    memory()[i] = value;
  }

 private:
  static constexpr std::size_t size = threads_per_block * sizeof(T);

  static __device__ T* memory() {
    alignas(16) __shared__ unsigned char bytes[size];
    return reinterpret_cast<T*>(bytes);
  }
  static __device__ void watch([[maybe_unused]] int i, [[maybe_unused]] bool writes) {
#if defined(PLEAT_CUDA_DOUBLE)
    cuda_double::watch_shared(memory(), static_cast<std::size_t>(i), sizeof(T), size, writes);
#endif
  }
};

/// Functors for any block are for host and device alike, so the methods must be, too; on the host nobody
/// calls them.
class DeviceBlock {
 public:
  /// A register.
  template <class T>
  struct Own {
    T value;
    __host__ __device__ T& operator[](int) { return value; }
  };

  template <class F>
  __host__ __device__ void each(const F& f) {
#if PLEAT_DEVICE_CODE
    f(static_cast<int>(threadIdx.x));
#else
    (void)f;
#endif
  }

  /// The variable of each team's lane 0 becomes all of theirs merged: lane i takes in lane i + lanes / 2,
  /// then i + lanes / 4, ... so the order does not depend on when threads run.
  template <class T, class Merge, class Sharing>
  __host__ __device__ void combine(Own<T>& own, const Sharing& teams, const Merge& merge) {
#if PLEAT_DEVICE_CODE
    const SharedArray<T> all;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = teams.lane_of(thread);
    for (int half = teams.lanes() / 2; half > 0; half /= 2) {
      const int apart = half * teams.step();
      if (apart < detail::warp_threads) {
        const T other = detail::moved_words(own.value, [apart](unsigned word) {
          return __shfl_down_sync(detail::whole_warp, word, static_cast<unsigned>(apart));
        });
        if (lane < half) merge(own.value, other);
      } else {
        __syncthreads();  // until all have read what was there before
        all.write(thread, own.value);
        __syncthreads();
        if (lane < half) merge(own.value, all.read(thread + apart));
      }
    }
#else
    (void)own;
    (void)teams;
    (void)merge;
#endif
  }

  /// All threads of a team get the variable of its lane 0.
  template <class T, class Sharing>
  __host__ __device__ void share(Own<T>& own, const Sharing& teams) {
#if PLEAT_DEVICE_CODE
    if (teams.adjacent && teams.lanes() <= detail::warp_threads) {
      const int lanes = teams.lanes();
      own.value = detail::moved_words(
          own.value, [lanes](unsigned word) { return __shfl_sync(detail::whole_warp, word, 0, lanes); });
      return;
    }
    const SharedArray<T> all;
    const int thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    if (teams.lane_of(thread) == 0) all.write(teams.team_of(thread), own.value);
    __syncthreads();
    own.value = all.read(teams.team_of(thread));
#else
    (void)own;
    (void)teams;
#endif
  }

  /// As in cooperative groups: the barrier orders what the block's threads wrote before the first fence, and
  /// the second fence before what they read from here on.
  __host__ __device__ bool last_of(unsigned* counter, int64_t blocks) {
#if PLEAT_DEVICE_CODE
    const SharedArray<int> last;
    __syncthreads();
    if (threadIdx.x == 0) {
      const auto most = static_cast<unsigned>(blocks - 1);
      __threadfence();
      last.write(0, atomicInc(counter, most) == most ? 1 : 0);  // becomes 0 again after `most`
      __threadfence();
    }
    __syncthreads();
    return last.read(0) != 0;
#else
    (void)counter;
    (void)blocks;
    return false;
#endif
  }
};

template <class Functor>
__global__ void __launch_bounds__(threads_per_block, least_blocks<Functor>)
    block_kernel(int64_t blocks, const Functor functor) {
  DeviceBlock block;
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) functor(b, block);
}

}  // namespace pleat
