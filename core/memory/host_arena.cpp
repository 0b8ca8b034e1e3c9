#include "pleat/core/memory/host_arena.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "pleat/core/base/checked_math.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pleat {
namespace {

/// Addresses are made usable so many bytes at a time. Pages of 2 MiB (where
/// /sys/kernel/mm/transparent_hugepage/enabled allows them) cause fewer faults when they are touched first,
/// and fewer misses of the TLB later.
constexpr int64_t usable_step = 64 << 20;
constexpr int64_t huge_page = 2 << 20;

}  // namespace

HostArena::HostArena([[maybe_unused]] int64_t capacity) {
#if defined(__linux__)
  capacity = round_up(capacity, usable_step);
  void* range = mmap(nullptr, static_cast<std::size_t>(capacity + huge_page), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  const auto address = reinterpret_cast<uintptr_t>(range);
  begin_ = reinterpret_cast<std::byte*>(round_up(static_cast<int64_t>(address), huge_page));
  capacity_ = capacity;
  madvise(begin_, static_cast<std::size_t>(capacity), MADV_HUGEPAGE);
#endif
}

HostArena::~HostArena() {
#if defined(__linux__)
  if (begin_ != nullptr) munmap(begin_, static_cast<std::size_t>(capacity_));
#endif
}

HostArena::Taken HostArena::take(int64_t bytes) {
  for (auto place = free_.begin(); place != free_.end(); ++place) {
    const auto [begin, part] = *place;
    if (part.size < bytes) continue;
    free_.erase(place);
    const int64_t cached = std::min(part.cached, bytes);
    if (part.size > bytes)
      free_.emplace(begin + bytes, Free{part.size - bytes, part.cached - cached, part.returned});
    return {begin_ + begin, cached};
  }
  // Behind all others, from the last free part on where that reaches the end.
  int64_t begin = end_, cached = 0;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second.size == end_) {
      begin = last->first;
      cached = last->second.cached;
    }
  }
  if (bytes > capacity_ - begin) return {nullptr, 0};
#if defined(__linux__)
  if (begin + bytes > usable_) {
    const int64_t usable = std::min(capacity_, round_up(begin + bytes, usable_step));
    if (mprotect(begin_ + usable_, static_cast<std::size_t>(usable - usable_), PROT_READ | PROT_WRITE) != 0)
      return {nullptr, 0};
    usable_ = usable;
  }
#endif
  free_.erase(begin);
  end_ = begin + bytes;
  return {begin_ + begin, cached};
}

void HostArena::give_back(std::byte* block, const Free& part) {
  int64_t begin = block - begin_;
  Free whole = part;
  const auto join = [&](auto place) {
    whole.size += place->second.size;
    whole.cached += place->second.cached;
    whole.returned = std::max(whole.returned, place->second.returned);
    free_.erase(place);
  };
  const auto next = free_.find(begin + part.size);
  if (next != free_.end()) join(next);
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.size == begin) {
      begin = before->first;
      join(before);
    }
  }
  free_.emplace(begin, whole);
}

uint64_t HostArena::oldest() const {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const auto& [begin, part] : free_)
    if (part.cached > 0) oldest = std::min(oldest, part.returned);
  return oldest;
}

std::pair<std::byte*, HostArena::Free> HostArena::take_oldest(int64_t wanted) {
  const uint64_t when = oldest();
  const auto place = std::find_if(free_.begin(), free_.end(), [&](const auto& one) {
    return one.second.cached > 0 && one.second.returned == when;
  });
  const int64_t begin = place->first, size = std::min(place->second.size, round_up(wanted, huge_page));
  Free& part = place->second;
  const Free taken{size, std::min(part.cached, size), when};
  const int64_t rest = part.size - size;
  part.size = rest;
  part.cached -= taken.cached;
  if (rest == 0) free_.erase(place);
  return {begin_ + begin + rest, taken};
}

void HostArena::discard([[maybe_unused]] std::byte* block, [[maybe_unused]] const Free& part) {
#if defined(__linux__)
  madvise(block, static_cast<std::size_t>(part.size), MADV_DONTNEED);
#endif
}

}  // namespace pleat
