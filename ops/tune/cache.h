// Private header: not installed.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/base/fork.h"
#include "pleat/ops/tune/tuner.h"

namespace pleat::ops {

/// "AMD EPYC 9654 96-Core Processor", where the system tells; else "unknown CPU".
std::string cpu_model();

/// Everything on which a timing depends, as text: what a file has is compared as it is.
struct TuneKey {
  std::string machine;   ///< "NVIDIA H200 sm_90", "AMD EPYC 9654, 16 threads"
  std::string versions;  ///< of Pleat and the libraries
  std::string problem;   ///< the problem and the conditions of the call

  /// All of it, a line each.
  std::string text() const { return machine + '\n' + versions + '\n' + problem; }
  bool operator==(const TuneKey&) const = default;
};

/// The key of a problem on a device, now.
TuneKey tune_key(Device device, std::string problem);

/// The times of a problem's candidates.
struct TuneEntry {
  TuneKey key;
  std::vector<Timing> timings;  ///< the fastest first, failures last
};

/// What is known, bounded: the entry used longest ago goes first. Safe to use from several threads.
class TuneCache {
 public:
  explicit TuneCache(std::size_t limit) : limit_(limit) {}

  /// The fastest implementation for a key. Counts as a use.
  std::optional<std::string> winner(const TuneKey& key) {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(key.text());
    if (place == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, place->second);
    return entries_.front().timings.front().implementation;
  }
  void put(TuneEntry entry) {
    const std::lock_guard lock(mutex_);
    put_locked(std::move(entry));
  }
  /// Puts all of them; the first is taken to be the last used.
  void put(const std::vector<TuneEntry>& entries) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) put_locked(*entry);
  }
  /// A copy, the last used first.
  std::vector<TuneEntry> entries() const {
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
  void put_locked(TuneEntry entry) {
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

  mutable ForkMutex<std::mutex> mutex_;
  std::size_t limit_;
  std::list<TuneEntry> entries_;  // the last used first
  std::unordered_map<std::string, std::list<TuneEntry>::iterator> places_;
};

/// What is known in this process.
TuneCache& known_timings();

/// The JSON text of entries.
std::string tuning_text(const std::vector<TuneEntry>& entries);
/// The entries of a file. Throws FileError naming it.
std::vector<TuneEntry> read_tuning(const std::string& path, ReadOptions options = {});

}  // namespace pleat::ops
