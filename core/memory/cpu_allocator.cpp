#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/memory/device_allocator.h"
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

/// Large blocks consist of pages of 2 MiB where Linux has them on request
/// (/sys/kernel/mm/transparent_hugepage/enabled): fewer faults when they are touched first, and fewer misses
/// of the TLB later. In smaller blocks too much of the last page would be idle.
constexpr int64_t huge_page = 2 << 20;
constexpr int64_t least_of_huge_pages = 2 * huge_page;

void* system_block(int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  if (bytes >= least_of_huge_pages) {
    const auto whole = static_cast<std::size_t>(round_up(bytes, huge_page));
    void* block = std::aligned_alloc(huge_page, whole);
    if (block != nullptr) madvise(block, whole, MADV_HUGEPAGE);  // small pages where it fails
    return block;
  }
#endif
  return std::aligned_alloc(alignment, static_cast<std::size_t>(bytes));
}

/// Keeps freed blocks by size. Fresh pages have to be zeroed by the kernel at their first touch, which costs
/// more than the arithmetic of a small convolution; a block from here has its pages already. Where the limit
/// is reached, the blocks that were given back longest ago make room, so that the sizes in use are what is
/// kept.
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

  void release() override {
    std::map<int64_t, std::deque<Cached>> blocks;
    {
      const std::lock_guard lock(mutex_);
      blocks.swap(free_);
      statistics_.cached = 0;
    }
    for (auto& [size, list] : blocks)
      for (const Cached& cached : list) std::free(cached.block);
  }

  void set_limit(int64_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      limit_ = bytes;
    }
    for (;;) {
      std::byte* oldest = nullptr;
      {
        const std::lock_guard lock(mutex_);
        if (statistics_.cached <= limit_) return;
        oldest = take_oldest();
      }
      std::free(oldest);
    }
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
    // Before anyone else can have it.
    detail::forbid_access(block, static_cast<std::size_t>(bytes));
    std::byte* unwanted = nullptr;
    int64_t in_use = bytes;
    do {
      {
        const std::lock_guard lock(mutex_);
        statistics_.allocated -= std::exchange(in_use, 0);
        if (bytes > limit_)
          unwanted = block;
        else if (statistics_.cached + bytes > limit_)
          unwanted = take_oldest();
        else
          unwanted = keep(block, bytes) ? nullptr : block;
      }
      std::free(unwanted);  // not while others wait: the system takes its time over large blocks
    } while (unwanted != nullptr && unwanted != block);
  }

  bool keep(std::byte* block, int64_t bytes) {
    try {
      free_[bytes].push_back({block, ++returns_});
    } catch (const std::bad_alloc&) {  // no room to remember it
      return false;
    }
    statistics_.cached += bytes;
    return true;
  }

  /// The cached block that was given back longest ago; there must be one. Of each size that is the first; and
  /// sizes are few, eight for each power of two.
  std::byte* take_oldest() {
    auto oldest = free_.end();
    for (auto size = free_.begin(); size != free_.end(); ++size)
      if (!size->second.empty() &&
          (oldest == free_.end() || size->second.front().returned < oldest->second.front().returned))
        oldest = size;
    std::byte* const block = oldest->second.front().block;
    oldest->second.pop_front();
    statistics_.cached -= oldest->first;
    return block;
  }

  /// A block of `bytes`, from the cache or the system.
  std::byte* block_of(int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      ++statistics_.requests;
      const auto found = free_.find(bytes);
      if (found != free_.end() && !found->second.empty()) {
        std::byte* block = found->second.back().block;  // the one whose pages are warmest
        found->second.pop_back();
        ++statistics_.hits;
        statistics_.cached -= bytes;
        count_allocated(bytes);
        return block;
      }
    }
    void* block = from_system(bytes);
    if (block == nullptr) {
      {
        const std::lock_guard lock(mutex_);
        ++statistics_.retries;
      }
      release();
      block = from_system(bytes);
    }
    const std::lock_guard lock(mutex_);
    if (block == nullptr)
      fail<OutOfMemoryError>(
          "allocate: {} cannot be had on the cpu: the machine has {}, and tensors use {} of it; use smaller "
          "sizes or a smaller batch",
          text_of_bytes(bytes), text_of_bytes(host_memory()), text_of_bytes(statistics_.allocated));
    count_allocated(bytes);
    return static_cast<std::byte*>(block);
  }

  /// Null where the machine does not have it, which the system would say only when the pages are touched, by
  /// ending the process.
  void* from_system(int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (bytes > host_memory() - statistics_.allocated - statistics_.cached) return nullptr;
    }
    return system_block(bytes);
  }

  void count_allocated(int64_t bytes) {
    statistics_.allocated += bytes;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
    statistics_.peak_reserved =
        std::max(statistics_.peak_reserved, statistics_.allocated + statistics_.cached);
  }

  std::mutex mutex_;
  std::map<int64_t, std::deque<Cached>> free_;  // by size, in the order of their return
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
