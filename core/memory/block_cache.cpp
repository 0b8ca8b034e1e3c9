#include "pleat/core/memory/block_cache.h"

#include <algorithm>
#include <tuple>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"

namespace pleat {
namespace {

constexpr int64_t mebi = 1 << 20;
/// Every block starts at and has a multiple of this: the widest loads of a GPU stay aligned.
constexpr int64_t granule = 512;
/// Small blocks have segments of their own, so that they do not chop up the large ones.
constexpr int64_t small_block = mebi;
constexpr int64_t small_segment = 2 * mebi;
/// Blocks of medium size share a segment; from `large_block` on each has its own, in steps of `segment_step`.
constexpr int64_t large_block = 10 * mebi;
constexpr int64_t shared_segment = 20 * mebi;
constexpr int64_t segment_step = 2 * mebi;

}  // namespace

/// A piece of a segment. `previous` and `next` are its neighbours there.
struct BlockCache::Block {
  enum class State : unsigned char { free, used, waiting };

  std::byte* address = nullptr;
  int64_t size = 0;
  StreamId stream;
  bool small = false;
  State state = State::used;
  Block* previous = nullptr;
  Block* next = nullptr;
  std::vector<StreamId> other_streams;
  int64_t events = 0;  ///< that it waits for
  std::list<Block>::iterator self;

  bool is_segment() const { return previous == nullptr && next == nullptr; }
};

struct BlockCache::Key {
  StreamId stream;
  int64_t size;
};

/// By stream, then size: the first one not below a key is the best fit.
struct BlockCache::Order {
  using is_transparent = void;
  static auto tie(const Block* b) { return std::tie(b->stream, b->size, b->address); }
  bool operator()(const Block* a, const Block* b) const { return tie(a) < tie(b); }
  bool operator()(const Block* a, const Key& b) const {
    return std::tie(a->stream, a->size) < std::tie(b.stream, b.size);
  }
  bool operator()(const Key& a, const Block* b) const {
    return std::tie(a.stream, a.size) < std::tie(b->stream, b->size);
  }
};

struct BlockCache::Pool {
  std::set<Block*, Order> free;
};

BlockCache::BlockCache(RawMemory& memory, bool separate)
    : memory_(memory), pools_{std::make_unique<Pool>(), std::make_unique<Pool>()}, separate_(separate) {}

BlockCache::~BlockCache() {
  for (auto& [stream, queue] : pending_)
    for (const Pending& pending : queue) memory_.destroy(pending.event);
  for (const Block& block : blocks_)
    if (block.previous == nullptr) memory_.free(block.address);
}

int64_t BlockCache::segment_size(int64_t bytes) const {
  if (separate_) return bytes;
  if (bytes <= small_block) return small_segment;
  return bytes < large_block ? shared_segment : round_up(bytes, segment_step);
}

BlockCache::Pool& BlockCache::pool_of(bool small) { return *pools_[small ? 0 : 1]; }

std::shared_ptr<std::byte> BlockCache::allocate(int64_t bytes, StreamId stream) {
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.requests;
    block = obtain(round_up(std::max<int64_t>(bytes, 1), separate_ ? 1 : granule), stream);
    statistics_.allocated += block->size;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
  }
  memory_.report(block->address, block->size);
  return {block->address, GiveBack{this, block}};
}

BlockCache::Block* BlockCache::obtain(int64_t bytes, StreamId stream) {
  const bool small = bytes <= small_block;
  reuse_finished();
  Block* block = find(bytes, stream);
  if (block != nullptr)
    ++statistics_.hits;
  else
    block = add_segment(segment_size(bytes), small, stream);
  if (block == nullptr) {
    ++statistics_.retries;
    wait_for_pending();
    block = find(bytes, stream);
  }
  if (block == nullptr) {
    free_segments(0);
    block = add_segment(segment_size(bytes), small, stream);
    if (block == nullptr) block = add_segment(bytes, small, stream);
  }
  // Not by `check`, which would query the device's state at each request.
  if (block == nullptr)
    fail<OutOfMemoryError>(
        "allocate: {} cannot be had on {}: tensors use {}, and {} are cached in pieces that are "
        "too small or belong to other streams; {}. {}",
        text_of_bytes(bytes), memory_.name(), text_of_bytes(statistics_.allocated), text_of_bytes(cached()),
        memory_.state(),
        memory_.is_capturing() ? "While a graph is captured, what is cached cannot go back to the device: "
                                 "empty_cache() before that"
                               : "A smaller batch needs less, and so do tensors that are let go as soon as "
                                 "they are no longer needed");
  block->state = Block::State::used;
  split(block, bytes);
  return block;
}

BlockCache::Block* BlockCache::find(int64_t bytes, StreamId stream) {
  auto& free = pool_of(bytes <= small_block).free;
  const auto found = free.lower_bound(Key{stream, bytes});
  if (found == free.end() || (*found)->stream != stream) return nullptr;
  if (separate_ && (*found)->size != bytes) return nullptr;
  Block* block = *found;
  free.erase(found);
  return block;
}

BlockCache::Block* BlockCache::add_segment(int64_t bytes, bool small, StreamId stream) {
  std::byte* address = memory_.allocate(bytes);
  if (address == nullptr) return nullptr;
  Block& block = blocks_.emplace_back();
  block.address = address;
  block.size = bytes;
  block.stream = stream;
  block.small = small;
  block.self = std::prev(blocks_.end());
  statistics_.reserved += bytes;
  statistics_.peak_reserved = std::max(statistics_.peak_reserved, statistics_.reserved);
  return &block;
}

void BlockCache::split(Block* block, int64_t bytes) {
  const int64_t rest = block->size - bytes;
  // A rest of a large block that only small ones could use would never be asked for.
  if (block->small ? rest < granule : rest <= small_block) return;
  Block& tail = blocks_.emplace_back();
  tail.address = block->address + bytes;
  tail.size = rest;
  tail.stream = block->stream;
  tail.small = block->small;
  tail.previous = block;
  tail.next = block->next;
  tail.self = std::prev(blocks_.end());
  if (tail.next != nullptr) tail.next->previous = &tail;
  block->next = &tail;
  block->size = bytes;
  make_free(&tail);
}

void BlockCache::absorb_next(Block* block) {
  Block* gone = block->next;
  block->size += gone->size;
  block->next = gone->next;
  if (block->next != nullptr) block->next->previous = block;
  blocks_.erase(gone->self);
}

void BlockCache::make_free(Block* block) {
  auto& free = pool_of(block->small).free;
  block->state = Block::State::free;
  if (block->next != nullptr && block->next->state == Block::State::free) {
    free.erase(block->next);
    absorb_next(block);
  }
  if (block->previous != nullptr && block->previous->state == Block::State::free) {
    block = block->previous;
    free.erase(block);
    absorb_next(block);
  }
  free.insert(block);
}

void BlockCache::give_back(Block* block) noexcept {
  memory_.report(block->address, -block->size);
  const std::lock_guard lock(mutex_);
  statistics_.allocated -= block->size;
  try {
    if (block->other_streams.empty()) {
      make_free(block);
    } else {
      block->state = Block::State::waiting;
      unrecorded_.push_back(block);
      record_events();
    }
    free_segments(limit_);
  } catch (...) {
    // The device is lost, or the host has no memory for the bookkeeping: the block is never used again.
  }
}

// A later event than necessary is as good, so what fails now is done with the next request.
void BlockCache::record_events() {
  while (!unrecorded_.empty()) {
    Block* block = unrecorded_.back();
    auto& others = block->other_streams;
    for (; !others.empty(); others.pop_back()) {
      auto& queue = pending_[others.back()];
      queue.push_back({nullptr, block});
      try {
        queue.back().event = memory_.record(others.back());
      } catch (...) {
        queue.pop_back();
        return;
      }
      ++block->events;
    }
    unrecorded_.pop_back();
  }
}

void BlockCache::record_stream(Block& block, StreamId stream) {
  const std::lock_guard lock(mutex_);
  if (stream == block.stream) return;
  auto& others = block.other_streams;
  if (std::find(others.begin(), others.end(), stream) == others.end()) others.push_back(stream);
}

void BlockCache::reuse_finished() {
  record_events();
  for (auto& [stream, queue] : pending_)
    while (!queue.empty() && memory_.is_done(queue.front().event)) {
      const Pending done = queue.front();
      queue.pop_front();
      memory_.destroy(done.event);
      if (--done.block->events == 0 && done.block->other_streams.empty()) make_free(done.block);
    }
}

void BlockCache::wait_for_pending() {
  record_events();
  if (memory_.is_capturing()) return;
  for (auto& [stream, queue] : pending_)
    if (!queue.empty()) memory_.wait(queue.back().event);
  reuse_finished();
}

void BlockCache::free_segments(int64_t keep) {
  if (cached() <= keep || memory_.is_capturing()) return;
  for (const auto& pool : pools_)
    for (auto next = pool->free.begin(); next != pool->free.end() && cached() > keep;) {
      Block* block = *next++;
      if (!block->is_segment() || held_.contains(block->stream)) continue;
      pool->free.erase(block);
      memory_.free(block->address);
      statistics_.reserved -= block->size;
      blocks_.erase(block->self);
    }
}

void BlockCache::release() {
  const std::lock_guard lock(mutex_);
  wait_for_pending();
  free_segments(0);
}

void BlockCache::hold(StreamId stream) {
  const std::lock_guard lock(mutex_);
  held_.insert(stream);
}

void BlockCache::let_go(StreamId stream) {
  const std::lock_guard lock(mutex_);
  held_.erase(held_.find(stream));
  free_segments(limit_);
}

void BlockCache::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  reuse_finished();
  free_segments(limit_);
}

void BlockCache::trim() {
  const std::lock_guard lock(mutex_);
  free_segments(limit_);
}

AllocatorStatistics BlockCache::statistics() const {
  const std::lock_guard lock(mutex_);
  AllocatorStatistics result = statistics_;
  result.cached = cached();
  return result;
}

void BlockCache::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak = statistics_.allocated;
  statistics_.peak_reserved = statistics_.reserved;
}

void record_stream(const std::shared_ptr<std::byte>& memory, StreamId stream) {
  if (const GiveBack* from = std::get_deleter<GiveBack>(memory))
    from->cache->record_stream(*from->block, stream);
}

}  // namespace pleat
