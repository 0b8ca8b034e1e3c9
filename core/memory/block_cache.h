// Private header: not installed.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pleat/core/base/fork.h"
#include "pleat/core/memory/allocator.h"

/// Caching of memory that is dear to allocate and is used by streams: a GPU's own memory, and pinned memory
/// of the host.
///
/// A device's allocation calls wait for the device, so memory is taken in large segments and handed out in
/// blocks. Work is given to streams and runs later; a block that was let go may still be written by work on
/// its stream. It is reused at once, but only for the same stream, where the new work queues behind the old.
/// Work on other streams is named by `record_stream`; the block then waits until that work is done.
///
/// Nothing here depends on CUDA: it takes its memory from a RawMemory, and tests pass one of their own.

namespace pleat {

/// A queue of work. Default streams of different devices have the same `native`.
struct StreamId {
  int device = 0;
  void* native = nullptr;
  auto operator<=>(const StreamId&) const = default;
};

/// Memory and events as a device offers them. Calls come one at a time.
class RawMemory {
 public:
  using Event = void*;
  virtual ~RawMemory() = default;
  /// nullptr when the device has not as much.
  virtual std::byte* allocate(int64_t bytes) = 0;
  /// Waits for all work that uses the memory.
  virtual void free(std::byte* memory) noexcept = 0;
  /// An event that is done when what was given to the stream so far is done.
  virtual Event record(StreamId stream) = 0;
  virtual bool is_done(Event event) = 0;
  virtual void wait(Event event) = 0;
  virtual void destroy(Event event) noexcept = 0;
  /// Whether this thread captures a graph: then nothing is freed and nothing waited for.
  virtual bool is_capturing() const { return false; }
  /// Told of each block that is handed out (bytes > 0) and given back (bytes < 0). Must not call the cache.
  virtual void report(const std::byte*, int64_t /*bytes*/) noexcept {}
  /// For messages: "cuda:0", and "the device has 80.0 GiB, of which 1.5 GiB are free".
  virtual std::string name() const = 0;
  virtual std::string state() const = 0;
};

class BlockCache {
 public:
  struct Block;

  /// `memory` must outlive the cache, and the cache all memory from it. `separate`: every block is a segment
  /// of its own and as long as was asked for, so that tools that watch the device's memory see where it ends.
  explicit BlockCache(RawMemory& memory, bool separate = false);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// At least `bytes`, aligned to 512 (as the device's memory when separate), for work on `stream`; given
  /// back when the last owner lets go. When the device has no more, waits for blocks that other streams still
  /// use, then frees all segments that are not in use and tries again, before it throws OutOfMemoryError with
  /// the figures.
  std::shared_ptr<std::byte> allocate(int64_t bytes, StreamId stream);

  /// The memory is reused only after what is in `stream` when its last owner lets go.
  void record_stream(Block& block, StreamId stream);

  /// Gives segments without a block in use back to the device.
  void release();
  /// Segments of a stream stay, in use or not, until it is let go as often as it was held: a graph uses them
  /// whenever it runs.
  void hold(StreamId stream);
  void let_go(StreamId stream);
  /// The most bytes kept in unused blocks, as far as whole segments can be freed.
  void set_limit(int64_t bytes);
  /// Gives back what is over the limit, as after a capture, which has to keep it.
  void trim();
  AllocatorStatistics statistics() const;
  void reset_peak();

 private:
  struct Order;
  struct Key;
  struct Pool;
  struct Pending {
    RawMemory::Event event;
    Block* block;
  };

  Block* find(int64_t bytes, StreamId stream);
  Block* add_segment(int64_t bytes, bool small, StreamId stream);
  Block* obtain(int64_t bytes, StreamId stream);
  void split(Block* block, int64_t bytes);
  void make_free(Block* block);
  void absorb_next(Block* block);
  void record_events();
  void reuse_finished();
  void wait_for_pending();
  void free_segments(int64_t keep);
  void give_back(Block* block) noexcept;
  int64_t cached() const { return statistics_.reserved - statistics_.allocated; }
  Pool& pool_of(bool small);

  friend struct GiveBack;

  int64_t segment_size(int64_t bytes) const;

  RawMemory& memory_;
  mutable ForkMutex<std::mutex> mutex_;
  std::list<Block> blocks_;
  std::array<std::unique_ptr<Pool>, 2> pools_;  ///< small, large
  std::map<StreamId, std::deque<Pending>> pending_;
  std::multiset<StreamId> held_;
  std::vector<Block*> unrecorded_;  ///< wait for other streams, whose events are yet to be recorded
  AllocatorStatistics statistics_;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  bool separate_;
};

/// The deleter of memory from a BlockCache, by which `std::get_deleter` finds the block again.
struct GiveBack {
  BlockCache* cache;
  BlockCache::Block* block;
  void operator()(std::byte*) const noexcept { cache->give_back(block); }
};

/// As BlockCache::record_stream; does nothing for memory that is from no BlockCache.
void record_stream(const std::shared_ptr<std::byte>& memory, StreamId stream);

}  // namespace pleat
