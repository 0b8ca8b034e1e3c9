// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pleat/core/base/device.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/kernels/block_counters.h"
#include "pleat/core/kernels/launch.h"

/// Kernels whose threads put together what each of them found. A functor is called by all threads of a block
/// as `functor(number of the block, block)`:
///
///   double total = ...;  // of this thread
///   block.combine(total, teams, [](double& a, double b) { a += b; });
///   if (teams.lane_of(block.thread()) == 0) result[teams.team_of(block.thread())] = total;
///
/// What blocks found can be put together in the same launch, by the one that comes last:
///
///   if (block.last_of(counter, blocks)) ...  // everything that `blocks` blocks wrote before can be read
///   here
///
/// Which block that is differs from run to run; what it does must not depend on it. All threads of a block
/// call `combine`, `share` and `last_of`, or none. For files with kernels only.

namespace pleat {

inline constexpr int log_block_threads = 8;
static_assert(1 << log_block_threads == block_threads);

/// How the threads of a block are shared out: teams of a power of two of threads.
struct Teams {
  int log_lanes = 0;     ///< of the threads of a team, at most block_threads
  bool adjacent = true;  ///< neighbouring threads are of one team; else of different ones

  __host__ __device__ int lanes() const { return 1 << log_lanes; }
  __host__ __device__ int count() const { return block_threads >> log_lanes; }
  __host__ __device__ int team_of(int thread) const {
    return adjacent ? thread >> log_lanes : thread & (count() - 1);
  }
  __host__ __device__ int lane_of(int thread) const {
    return adjacent ? thread & (lanes() - 1) : thread >> (log_block_threads - log_lanes);
  }
  /// How far apart the threads of two lanes are that lie one behind the other.
  __host__ __device__ int step() const { return adjacent ? 1 : count(); }
};

/// Teams for results of `count` elements each. `across`: how many neighbours in memory belong to different
/// results (1 where a result's own elements are neighbours).
Teams choose_teams(int64_t count, int64_t across);

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

/// Shared memory of a block: one T for each thread, or `count`. Every read and write of shared memory goes
/// through here, where the double of CUDA watches them.
template <class T, std::size_t count = block_threads>
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
  static constexpr std::size_t size = count * sizeof(T);

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

/// The threads of a block, as one of them sees them.
class Block {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }

  /// The value of each team's lane 0 becomes all of theirs merged: within a warp lane i takes in lane i + 1,
  /// then i + 2, i + 4 ..., then the first warp what the others have, in their order, which does not depend
  /// on when threads run. `merge` is also called with values of other teams, whose results nothing reads.
  template <class T, class Merge>
  __device__ void combine(T& value, const Teams& teams, const Merge& merge) const {
    const int step = teams.step();
    const int span = teams.lanes() * step;  // of a team's threads
    const int of_warp = span < detail::warp_threads ? span : detail::warp_threads;
    PLEAT_ROLLED
    for (int apart = step; apart < of_warp; apart *= 2)
      merge(value, detail::moved_words(value, [apart](unsigned word) {
              return __shfl_down_sync(detail::whole_warp, word, static_cast<unsigned>(apart));
            }));
    if (span == of_warp) return;
    const SharedArray<T> all;
    __syncthreads();  // until all have read what was there before
    if (thread() % detail::warp_threads < step) all.write(thread(), value);
    __syncthreads();
    const int next = step < detail::warp_threads ? detail::warp_threads : step;
    if (teams.lane_of(thread()) == 0) {
      PLEAT_ROLLED
      for (int from = next; from < span; from += next) merge(value, all.read(thread() + from));
    }
  }

  /// All threads of a team get the value of its lane 0.
  template <class T>
  __device__ void share(T& value, const Teams& teams) const {
    if (teams.adjacent && teams.lanes() <= detail::warp_threads) {
      const int lanes = teams.lanes();
      value = detail::moved_words(
          value, [lanes](unsigned word) { return __shfl_sync(detail::whole_warp, word, 0, lanes); });
      return;
    }
    const SharedArray<T> all;
    __syncthreads();
    if (teams.lane_of(thread()) == 0) all.write(teams.team_of(thread()), value);
    __syncthreads();
    value = all.read(teams.team_of(thread()));
  }

  /// Whether this is the last of `blocks` blocks that call this with one counter (block_counters.h), which is
  /// then zero again. As in cooperative groups: the barrier orders what the block's threads wrote before the
  /// first fence, and the second fence before what they read from here on.
  __device__ bool last_of(unsigned* counter, int64_t blocks) const {
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
  }
};

template <class Functor>
__global__ void __launch_bounds__(block_threads, least_blocks<Functor>) block_kernel(const Functor functor) {
  functor(static_cast<int64_t>(blockIdx.x), Block{});
}

/// Calls `functor(b, block)` for b = 0 ... blocks-1, in any order.
template <class Functor>
void launch_blocks(const char* op, Device device, int64_t blocks, const Functor& functor) {
  launch_kernel(op, device, blocks, &block_kernel<Functor>, functor);
}

}  // namespace pleat
