#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/block_cache.h"
#include "pleat/tests/catch.h"

namespace pleat::test {

/// A device that is only numbers: addresses that nobody may touch, and streams whose work is done when a test
/// says so.
class FakeMemory final : public RawMemory {
 public:
  explicit FakeMemory(int64_t capacity) : capacity_(capacity) {}

  std::byte* allocate(int64_t bytes) override {
    ++allocations;
    if (used_ + bytes > capacity_) return nullptr;
    used_ += bytes;
    const uintptr_t address = next_;
    next_ += static_cast<uintptr_t>(bytes) + 4096;
    segments_[address] = bytes;
    return reinterpret_cast<std::byte*>(address);
  }

  void free(std::byte* memory) noexcept override {
    if (capturing) ++wrong_frees;
    const auto found = segments_.find(reinterpret_cast<uintptr_t>(memory));
    if (found == segments_.end()) {
      ++wrong_frees;
      return;
    }
    used_ -= found->second;
    segments_.erase(found);
  }

  Event record(StreamId stream) override {
    if (records_to_fail > 0 && records_to_fail-- > 0) throw DeviceError("record: fails as it was asked to");
    const auto event = ++last_event_;
    events_[event] = {stream, issued_[stream]};
    return reinterpret_cast<Event>(event);
  }
  bool is_done(Event event) override {
    const auto& [stream, work] = events_.at(reinterpret_cast<uintptr_t>(event));
    return done_[stream] >= work;
  }
  bool is_capturing() const override { return capturing; }
  void wait(Event event) override {
    if (capturing) throw DeviceError("wait: a graph is captured");
    ++waits;
    const auto& [stream, work] = events_.at(reinterpret_cast<uintptr_t>(event));
    done_[stream] = std::max(done_[stream], work);
  }
  void destroy(Event event) noexcept override { events_.erase(reinterpret_cast<uintptr_t>(event)); }
  void report(const std::byte*, int64_t bytes) noexcept override { recorded += bytes; }
  std::string name() const override { return "cuda:0"; }
  std::string state() const override {
    ++questions;
    return "the device is a fake";
  }

  /// Gives a piece of work to a stream; returns its number.
  int64_t work(StreamId stream) { return ++issued_[stream]; }
  bool is_done(StreamId stream, int64_t work) { return done_[stream] >= work; }
  /// Does all work that the stream has.
  void run(StreamId stream) { done_[stream] = issued_[stream]; }

  int64_t used() const { return used_; }
  std::size_t segments() const { return segments_.size(); }
  std::size_t events() const { return events_.size(); }
  /// Whether [first, first + bytes) lies in one segment.
  bool holds(const std::byte* first, int64_t bytes) const {
    const auto address = reinterpret_cast<uintptr_t>(first);
    auto after = segments_.upper_bound(address);
    if (after == segments_.begin()) return false;
    --after;
    return address + static_cast<uintptr_t>(bytes) <= after->first + static_cast<uintptr_t>(after->second);
  }

  std::atomic<int64_t> recorded{0};  ///< bytes handed out less those given back
  int allocations = 0;
  int waits = 0;
  int records_to_fail = 0;
  bool capturing = false;
  mutable int questions = 0;  ///< for its state
  int wrong_frees = 0;

 private:
  int64_t capacity_;
  int64_t used_ = 0;
  uintptr_t next_ = 1 << 20;
  std::map<uintptr_t, int64_t> segments_;
  uintptr_t last_event_ = 0;
  std::map<uintptr_t, std::pair<StreamId, int64_t>> events_;
  std::map<StreamId, int64_t> issued_;
  std::map<StreamId, int64_t> done_;
};

}  // namespace pleat::test
