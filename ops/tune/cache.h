// Private header: not installed.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {

/// The times of a problem's candidates. `Timing` has the `implementation` that it is of.
template <class Timing>
struct TuneEntry {
  TuneKey key;
  std::vector<Timing> timings;  ///< the fastest first, failures last
};

/// What is known, bounded: the entry used longest ago goes first. Safe to use from several threads.
template <class Timing>
class TuneCache {
 public:
  using Entry = TuneEntry<Timing>;

  explicit TuneCache(std::size_t limit) : limit_(limit) {}

  /// The fastest implementation for a key. Counts as a use.
  std::optional<std::string> winner(const TuneKey& key) {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(key.text());
    if (place == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, place->second);
    return entries_.front().timings.front().implementation;
  }
  void put(Entry entry) {
    const std::lock_guard lock(mutex_);
    put_locked(std::move(entry));
  }
  /// Puts all of them; the first is taken to be the last used.
  void put(const std::vector<Entry>& entries) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) put_locked(*entry);
  }
  /// A copy, the last used first.
  std::vector<Entry> entries() const {
    const std::lock_guard lock(mutex_);
    return {entries_.begin(), entries_.end()};
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  std::size_t limit() const {
    const std::lock_guard lock(mutex_);
    return limit_;
  }
  void set_limit(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    shrink();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
    places_.clear();
  }

 private:
  void put_locked(Entry entry) {
    const std::string text = entry.key.text();
    if (const auto place = places_.find(text); place != places_.end()) {
      entries_.erase(place->second);
      places_.erase(place);
    }
    entries_.push_front(std::move(entry));
    places_[text] = entries_.begin();
    shrink();
  }
  void shrink() {
    while (entries_.size() > limit_) {
      places_.erase(entries_.back().key.text());
      entries_.pop_back();
    }
  }

  mutable std::mutex mutex_;
  std::size_t limit_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> places_;
};

}  // namespace pleat::ops
