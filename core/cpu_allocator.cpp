#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <unistd.h>

#include "pleat/core/address_sanitizer.h"
#include "pleat/core/bytes.h"
#include "pleat/core/device_allocator.h"
#include "pleat/core/format.h"
#include "pleat/core/record_function.h"

namespace pleat {
namespace {

constexpr int64_t alignment = 64;
constexpr int64_t mebi = 1 << 20;

/// Sizes in steps of an eighth of a power of two, so that blocks of nearly equal requests serve each other
/// and at most 12.5 % is wasted.
int64_t rounded(int64_t size) {
  if (size <= alignment) return alignment;
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)));
  const int64_t step = std::max(alignment, power / 8);
  return (size + step - 1) / step * step;
}

int64_t default_limit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages / 8 * page : 512 * mebi;
}

/// Keeps freed blocks by size. Fresh pages have to be zeroed by the kernel at their first touch, which costs
/// more than the arithmetic of a small convolution; a block from here has its pages already.
class CpuAllocator final : public DeviceAllocator {
 public:
  std::shared_ptr<std::byte> allocate(int64_t size) override {
    std::byte* const memory = take(size);
    if (is_recording()) announce_memory(memory, rounded(size), Device());
    return {memory, [this, size](std::byte* block) {
              if (is_recording()) announce_memory(block, -rounded(size), Device());
              give_back(block, size);
            }};
  }

  void release() override {
    std::map<int64_t, std::vector<std::byte*>> blocks;
    {
      const std::lock_guard lock(mutex_);
      blocks.swap(free_);
      statistics_.cached = 0;
    }
    for (auto& [size, list] : blocks)
      for (std::byte* block : list) std::free(block);
  }

  void set_limit(int64_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      limit_ = bytes;
      if (statistics_.cached <= limit_) return;
    }
    release();
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
  std::byte* take(int64_t size) {
    const int64_t bytes = rounded(size);
    std::byte* block = block_of(bytes);
    detail::allow_access(block, static_cast<std::size_t>(size));
    // What nobody has written reads as NaN or -1 and shows in a result; a fresh page would read as zero.
    if constexpr (PLEAT_ADDRESS_SANITIZER) std::memset(block, 0xFF, static_cast<std::size_t>(size));
    detail::forbid_access(block + size, static_cast<std::size_t>(bytes - size));
    return block;
  }

  void give_back(std::byte* block, int64_t size) noexcept {
    const int64_t bytes = rounded(size);
    // Before anyone else can have it.
    detail::forbid_access(block, static_cast<std::size_t>(bytes));
    {
      const std::lock_guard lock(mutex_);
      statistics_.allocated -= bytes;
      if (statistics_.cached + bytes <= limit_) {
        try {
          free_[bytes].push_back(block);
          statistics_.cached += bytes;
          return;
        } catch (const std::bad_alloc&) {  // no room to remember it: let it go
        }
      }
    }
    std::free(block);
  }

  /// A block of `bytes`, from the cache or the system.
  std::byte* block_of(int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      ++statistics_.requests;
      const auto found = free_.find(bytes);
      if (found != free_.end() && !found->second.empty()) {
        std::byte* block = found->second.back();
        found->second.pop_back();
        ++statistics_.hits;
        statistics_.cached -= bytes;
        count_allocated(bytes);
        return block;
      }
    }
    void* block = std::aligned_alloc(alignment, static_cast<std::size_t>(bytes));
    if (block == nullptr) {
      {
        const std::lock_guard lock(mutex_);
        ++statistics_.retries;
      }
      release();
      block = std::aligned_alloc(alignment, static_cast<std::size_t>(bytes));
    }
    const std::lock_guard lock(mutex_);
    check<OutOfMemoryError>(block != nullptr, "allocate: {} cannot be had on the cpu; tensors use {}",
                            text_of_bytes(bytes), text_of_bytes(statistics_.allocated));
    count_allocated(bytes);
    return static_cast<std::byte*>(block);
  }

  void count_allocated(int64_t bytes) {
    statistics_.allocated += bytes;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
    statistics_.peak_reserved =
        std::max(statistics_.peak_reserved, statistics_.allocated + statistics_.cached);
  }

  std::mutex mutex_;
  std::map<int64_t, std::vector<std::byte*>> free_;
  AllocatorStatistics statistics_;
  int64_t limit_ = default_limit();
};

}  // namespace

DeviceAllocator& cpu_allocator() {
  static auto* allocator = new CpuAllocator;
  return *allocator;
}

}  // namespace pleat
