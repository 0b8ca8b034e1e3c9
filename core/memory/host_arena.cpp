#include "pleat/core/memory/host_arena.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/system/process.h"

namespace pleat {
namespace {

constexpr int64_t page = 2 << 20;  ///< in which memory is added

}  // namespace

HostArena::HostArena(int64_t capacity)
    : begin_(system::free_addresses(capacity)), capacity_(begin_ != nullptr ? capacity : 0) {}

HostArena::~HostArena() {
  if (begin_ != nullptr) system::release_addresses(begin_, usable_);
}

HostArena::Taken HostArena::take(int64_t bytes, int64_t most_new) {
  for (auto place = free_.begin(); place != free_.end(); ++place) {
    const auto [begin, part] = *place;
    if (part.size < bytes) continue;
    const int64_t cached = std::min(part.cached, bytes);
    if (bytes - cached > most_new) return {nullptr, 0};
    free_.erase(place);
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
  if (bytes > capacity_ - begin || bytes - cached > most_new) return {nullptr, 0};
  if (begin + bytes > usable_) {
    const int64_t usable = round_up(begin + bytes, page);
    if (!system::add_memory(begin_ + usable_, usable - usable_)) return {nullptr, 0};
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
  const int64_t begin = place->first, size = std::min(place->second.size, round_up(wanted, page));
  Free& part = place->second;
  const Free taken{size, std::min(part.cached, size), when};
  const int64_t rest = part.size - size;
  part.size = rest;
  part.cached -= taken.cached;
  if (rest == 0) free_.erase(place);
  return {begin_ + begin + rest, taken};
}

void HostArena::discard(std::byte* block, const Free& part) { system::discard_memory(block, part.size); }

}  // namespace pleat
