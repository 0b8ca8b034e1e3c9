#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/memory/device_allocator.h"
#include "pleat/core/memory/host_arena.h"
#include "pleat/core/memory/host_memory.h"

namespace pleat {
namespace {

constexpr int64_t alignment = 64;

/// Sizes in steps of an eighth of a power of two, so that blocks of nearly equal requests serve each other
/// and at most 12.5 % is wasted.
int64_t rounded(int64_t size) {
  if (size <= alignment) return alignment;
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)));
  const int64_t step = std::max(alignment, power / 8);
  return round_up(size, step);
}

/// Blocks from here on come from an arena, whose lowest parts are used over and over and stay in the caches;
/// finding one takes longer than a block of a certain size. It has more addresses than the machine has
/// memory, since no block is moved to close gaps.
constexpr int64_t least_of_arena = 64 << 10;
constexpr int64_t addresses_a_byte = 4;

/// Keeps freed blocks: small ones by size, large ones as parts of an arena. Fresh pages have to be zeroed by
/// the kernel at their first touch, which costs more than the arithmetic of a small convolution; a block from
/// here has its pages already. Where the limit is reached, the blocks that were given back longest ago make
/// room, so that the sizes in use are what is kept.
class CpuAllocator final : public DeviceAllocator {
 public:
  std::shared_ptr<std::byte> allocate(int64_t size) override {
    std::byte* const memory = take(size);
    if (is_recording()) record_memory(memory, rounded(size), Device());
    return {memory, [this, size](std::byte* block) {
              if (is_recording()) record_memory(block, -rounded(size), Device());
              give_back(block, size);
            }};
  }

  void release() override { shrink(0); }

  void set_limit(int64_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      limit_ = bytes;
    }
    shrink(bytes);
  }

  AllocatorStatistics statistics() override {
    const std::lock_guard lock(mutex_);
    AllocatorStatistics result = statistics_;
    result.reserved = result.allocated + result.cached;
    return result;
  }

  void reset_peak() override {
    const std::lock_guard lock(mutex_);
    statistics_.peak = statistics_.allocated;
    statistics_.peak_reserved = statistics_.allocated + statistics_.cached;
  }

 private:
  struct Cached {
    std::byte* block;
    uint64_t returned;  ///< the number of its return
  };
  /// What goes back to the system.
  struct Discarded {
    std::byte* block = nullptr;
    HostArena::Free part = {};
  };

  std::byte* take(int64_t size) {
    const int64_t bytes = rounded(size);
    std::byte* block = block_of(bytes);
    detail::allow_access(block, static_cast<std::size_t>(size));
    // Memory that was not written reads as NaN or -1 and shows in a result; a fresh page would read as zero.
    if constexpr (PLEAT_ADDRESS_SANITIZER) std::memset(block, 0xFF, static_cast<std::size_t>(size));
    detail::forbid_access(block + size, static_cast<std::size_t>(bytes - size));
    return block;
  }

  void give_back(std::byte* block, int64_t size) noexcept {
    const int64_t bytes = rounded(size);
    // Before another thread can have it.
    detail::forbid_access(block, static_cast<std::size_t>(bytes));
    int64_t in_use = bytes;
    for (;;) {
      Discarded discarded{block, {bytes, bytes, 0}};
      {
        const std::lock_guard lock(mutex_);
        statistics_.allocated -= std::exchange(in_use, 0);
        if (bytes <= limit_) {
          const int64_t excess = statistics_.cached + bytes - limit_;
          if (excess <= 0 && keep(block, bytes)) return;
          if (excess > 0) discarded = take_oldest(excess);
        }
      }
      discard(discarded);  // not while others wait: the system takes its time over large blocks
      if (discarded.block == block) return;
    }
  }

  bool keep(std::byte* block, int64_t bytes) {
    try {
      if (arena_.owns(block))
        arena_.give_back(block, {bytes, bytes, ++returns_});
      else
        free_[bytes].push_back({block, ++returns_});
    } catch (const std::bad_alloc&) {  // no room to remember it
      return false;
    }
    statistics_.cached += bytes;
    return true;
  }

  /// Lets go of what was given back longest ago until `limit` bytes are left.
  void shrink(int64_t limit) {
    for (;;) {
      Discarded oldest;
      {
        const std::lock_guard lock(mutex_);
        if (statistics_.cached <= limit) return;
        oldest = take_oldest(statistics_.cached - limit);
      }
      discard(oldest);
    }
  }

  void discard(const Discarded& discarded) noexcept {
    if (!arena_.owns(discarded.block)) return ::operator delete(discarded.block, std::align_val_t(alignment));
    HostArena::discard(discarded.block, discarded.part);
    const std::lock_guard lock(mutex_);
    try {
      arena_.give_back(discarded.block, {discarded.part.size, 0, discarded.part.returned});
    } catch (const std::bad_alloc&) {  // no room to remember the addresses: they are not used again
    }
  }

  /// The cached block that was given back longest ago, or about `wanted` bytes of a larger part of the arena;
  /// there must be one. Of each size that is the first; and sizes are few, eight for each power of two.
  Discarded take_oldest(int64_t wanted) {
    auto oldest = free_.end();
    for (auto size = free_.begin(); size != free_.end(); ++size)
      if (!size->second.empty() &&
          (oldest == free_.end() || size->second.front().returned < oldest->second.front().returned))
        oldest = size;
    Discarded taken;
    if (oldest == free_.end() || arena_.oldest() < oldest->second.front().returned) {
      const auto [block, part] = arena_.take_oldest(wanted);
      taken = {block, part};
    } else {
      taken = {oldest->second.front().block, {oldest->first, oldest->first, 0}};
      oldest->second.pop_front();
    }
    statistics_.cached -= taken.part.cached;
    return taken;
  }

  /// A block of `bytes`, from the cache or the system.
  std::byte* block_of(int64_t bytes) {
    if (std::byte* block = find(bytes, statistics_.requests)) return block;
    release();
    if (std::byte* block = find(bytes, statistics_.retries)) return block;
    const std::lock_guard lock(mutex_);
    fail<OutOfMemoryError>(
        "allocate: {} cannot be had on the cpu: the machine has {}, and tensors use {} of it; use smaller "
        "sizes or a smaller batch",
        text_of_bytes(bytes), text_of_bytes(host_memory()), text_of_bytes(statistics_.allocated));
  }

  /// Null where the machine does not have it, which the system would say only when the pages are touched, by
  /// ending the process. `tries` grows by one.
  std::byte* find(int64_t bytes, int64_t& tries) {
    {
      const std::lock_guard lock(mutex_);
      ++tries;
      const int64_t available = host_memory() - statistics_.allocated - statistics_.cached;
      if (bytes >= least_of_arena) {
        const auto [block, cached] = arena_.take(bytes, available);
        if (block != nullptr) return count_taken(block, bytes, cached);
      }
      const auto found = free_.find(bytes);
      if (found != free_.end() && !found->second.empty()) {
        std::byte* block = found->second.back().block;  // the one whose pages are warmest
        found->second.pop_back();
        return count_taken(block, bytes, bytes);
      }
      if (bytes > available) return nullptr;
    }
    void* block = ::operator new(static_cast<std::size_t>(bytes), std::align_val_t(alignment), std::nothrow);
    if (block == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    return count_taken(static_cast<std::byte*>(block), bytes, 0);
  }

  /// A block of which so many bytes were cached.
  std::byte* count_taken(std::byte* block, int64_t bytes, int64_t cached) {
    if (cached == bytes) ++statistics_.hits;
    statistics_.cached -= cached;
    statistics_.allocated += bytes;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
    statistics_.peak_reserved =
        std::max(statistics_.peak_reserved, statistics_.allocated + statistics_.cached);
    return block;
  }

  ForkMutex<std::mutex> mutex_;
  std::map<int64_t, std::deque<Cached>> free_;  // by size, in the order of their return
  HostArena arena_{addresses_a_byte * host_memory()};
  uint64_t returns_ = 0;
  AllocatorStatistics statistics_;
  int64_t limit_ = host_memory() / 8;
};

}  // namespace

DeviceAllocator& cpu_allocator() {
  static auto* allocator = new CpuAllocator;
  return *allocator;
}

}  // namespace pleat
