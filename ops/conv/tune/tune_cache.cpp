#include "pleat/ops/conv/tune/tune_cache.h"

#include <utility>

namespace pleat::ops {
namespace {

std::string joined(const TuneKey& key) { return key.machine + '\n' + key.versions + '\n' + key.problem; }

}  // namespace

std::optional<std::string> TuneCache::winner(const TuneKey& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(joined(key));
  if (place == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, place->second);
  return entries_.front().timings.front().implementation;
}

void TuneCache::put_locked(TuneEntry entry) {
  const std::string text = joined(entry.key);
  if (const auto place = places_.find(text); place != places_.end()) {
    entries_.erase(place->second);
    places_.erase(place);
  }
  entries_.push_front(std::move(entry));
  places_[text] = entries_.begin();
  shrink();
}

void TuneCache::put(TuneEntry entry) {
  const std::lock_guard lock(mutex_);
  put_locked(std::move(entry));
}

void TuneCache::put(const std::vector<TuneEntry>& entries) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) put_locked(*entry);
}

void TuneCache::shrink() {
  while (entries_.size() > limit_) {
    places_.erase(joined(entries_.back().key));
    entries_.pop_back();
  }
}

std::vector<TuneEntry> TuneCache::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

std::size_t TuneCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t TuneCache::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void TuneCache::set_limit(std::size_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  shrink();
}

void TuneCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  places_.clear();
}

}  // namespace pleat::ops
