// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pleat/core/device.h"
#include "pleat/core/grid.h"

#if PLEAT_COMPILES_KERNELS
#include "pleat/core/device_block.h"
#endif

/// Work for blocks of threads that put together what each of them found: a functor is called as
/// `functor(number of the block, block)` and says what all threads do between the points at which they meet,
///
///   typename Block::template Own<double> total;        // a variable that each thread has
///   block.each([&](int thread) { total[thread] = ...; });
///   block.combine(total, teams, [](double& a, double b) { a += b; });
///
/// On CUDA `each` is the thread's own turn, and `combine` goes through registers and shared memory. On the
/// CPU `each` is a loop over all threads, and `combine` merges in the same order: what a block computes there
/// has the same bits, wherever the functions it calls do.
///
/// What blocks found can be put together in the same launch, by the one that comes last:
///
///   if (block.last_of(counter, blocks)) ...  // everything that `blocks` blocks wrote before is here to read
///
/// Which block that is differs from run to run; what it does must not depend on it.

namespace pleat {

inline constexpr int log_block_threads = 8;
inline constexpr int block_threads = 1 << log_block_threads;
#if PLEAT_COMPILES_KERNELS
static_assert(block_threads == threads_per_block);
#endif

/// How the threads of a block are shared out: teams of a power of two of threads.
struct Teams {
  int log_lanes = 0;     ///< of the threads of a team, at most block_threads
  bool adjacent = true;  ///< neighbouring threads are of one team; else of different ones

  PLEAT_HOST_DEVICE int lanes() const { return 1 << log_lanes; }
  PLEAT_HOST_DEVICE int count() const { return block_threads >> log_lanes; }
  PLEAT_HOST_DEVICE int team_of(int thread) const {
    return adjacent ? thread >> log_lanes : thread & (count() - 1);
  }
  PLEAT_HOST_DEVICE int lane_of(int thread) const {
    return adjacent ? thread & (lanes() - 1) : thread >> (log_block_threads - log_lanes);
  }
  /// How far apart the threads of two lanes are that lie one behind the other.
  PLEAT_HOST_DEVICE int step() const { return adjacent ? 1 : count(); }
};

/// Teams for results of `count` elements each. `across`: how many neighbours in memory belong to different
/// results (1 where a result's own elements are neighbours).
Teams choose_teams(int64_t count, int64_t across);

/// A block on the CPU. Its methods are marked as the functors are that call them.
class HostBlock {
 public:
  template <class T>
  struct Own {
    std::array<T, static_cast<std::size_t>(block_threads)> values;
    PLEAT_HOST_DEVICE T& operator[](int thread) { return values[static_cast<std::size_t>(thread)]; }
  };

  template <class F>
  PLEAT_HOST_DEVICE void each(const F& f) {
    for (int thread = 0; thread < block_threads; ++thread) f(thread);
  }

  template <class T, class Merge>
  PLEAT_HOST_DEVICE void combine(Own<T>& own, const Teams& teams, const Merge& merge) {
    for (int half = teams.lanes() / 2; half > 0; half /= 2)
      each([&](int thread) {
        if (teams.lane_of(thread) < half) merge(own[thread], own[thread + half * teams.step()]);
      });
  }

  template <class T>
  PLEAT_HOST_DEVICE void share(Own<T>& own, const Teams& teams) {
    each([&](int thread) { own[thread] = own[thread - teams.lane_of(thread) * teams.step()]; });
  }

  /// Whether this is the last of `blocks` blocks that call this with one counter, which is then zero again.
  PLEAT_HOST_DEVICE bool last_of(unsigned* counter, int64_t blocks) {
#if defined(__CUDA_ARCH__)
    (void)counter;
    (void)blocks;
    return false;
#else
    if (__atomic_add_fetch(counter, 1U, __ATOMIC_ACQ_REL) != static_cast<unsigned>(blocks)) return false;
    __atomic_store_n(counter, 0U, __ATOMIC_RELAXED);
    return true;
#endif
  }
};

/// Counters for last_of, for one launch in the device's current stream; all zero. On CUDA each thread of the
/// host has some for each stream, which kernels leave as they found them: launches of a stream follow one
/// another, so that nobody has to clear them.
class BlockCounters {
 public:
  static constexpr int64_t most = 4096;

  /// `count` of them, at most `most`.
  BlockCounters(Device device, int64_t count);
  unsigned* data() const { return data_; }

 private:
  std::vector<unsigned> own_;
  unsigned* data_;
};

/// Calls `functor(b, block)` for b = 0 ... blocks-1, in any order, on the device's current stream.
template <class Functor>
void grid_blocks(const char* op, Device device, int64_t blocks, const Functor& functor) {
  if (blocks == 0) return;
#if PLEAT_COMPILES_KERNELS
  if (device.is_cuda()) return launch_blocks(op, device, blocks, &block_kernel<Functor>, blocks, functor);
#endif
  (void)op;
  (void)device;
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    HostBlock block;
    for (; first < last; ++first) functor(first, block);
  });
}

}  // namespace pleat
