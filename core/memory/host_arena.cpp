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

/// Memory comes in pages of 2 MiB where /sys/kernel/mm/transparent_hugepage/enabled allows them: fewer faults
/// when they are touched first, and fewer misses of the TLB later.
constexpr int64_t huge_page = 2 << 20;
/// The system gives addresses out from the top down. So far below the next one nothing lies, nor comes to lie
/// soon.
[[maybe_unused]] constexpr int64_t distance = int64_t{64} << 30;

/// Whether the system lets the process use these addresses, which nothing may use yet.
bool add_memory([[maybe_unused]] std::byte* begin, [[maybe_unused]] int64_t bytes) {
#if defined(__linux__)
  const auto size = static_cast<std::size_t>(bytes);
  void* at = mmap(begin, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == begin) {
    madvise(at, size, MADV_HUGEPAGE);  // small pages where it fails
    return true;
  }
  if (at != MAP_FAILED) munmap(at, size);  // kernels before 4.17 take the address for a hint
#endif
  return false;
}

}  // namespace

HostArena::HostArena([[maybe_unused]] int64_t capacity) {
#if defined(__linux__)
  void* next = mmap(nullptr, granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (next == MAP_FAILED) return;
  munmap(next, granule);
  const int64_t begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next)) - distance - capacity;
  if (begin <= 0) return;
  begin_ = reinterpret_cast<std::byte*>(begin / huge_page * huge_page);
  capacity_ = capacity;
#endif
}

HostArena::~HostArena() {
#if defined(__linux__)
  if (usable_ > 0) munmap(begin_, static_cast<std::size_t>(usable_));
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
  if (begin + bytes > usable_) {
    const int64_t usable = round_up(begin + bytes, huge_page);
    if (!add_memory(begin_ + usable_, usable - usable_)) return {nullptr, 0};
    usable_ = usable;
  }
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
