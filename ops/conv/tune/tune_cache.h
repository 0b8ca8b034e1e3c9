// Private header: not installed.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/ops/conv/tune/tune.h"

namespace pleat::ops {

/// Everything on which a timing depends, as text: what a file has is compared as it is.
struct TuneKey {
  std::string machine;   ///< "NVIDIA H200 sm_90", "AMD EPYC 9654, 16 threads"
  std::string versions;  ///< of Pleat and the libraries
  std::string problem;   ///< the problem and the conditions of the call

  bool operator==(const TuneKey&) const = default;
};

struct TuneEntry {
  TuneKey key;
  std::vector<ConvTiming> timings;  ///< of one pass, the fastest first, failures last
};

/// What is known, bounded: the entry used longest ago goes first. Safe to use from several threads.
class TuneCache {
 public:
  explicit TuneCache(std::size_t limit) : limit_(limit) {}

  /// The fastest implementation for a key. Counts as a use.
  std::optional<std::string> winner(const TuneKey& key);
  void put(TuneEntry entry);
  /// Puts all of them; the first is taken to be the last used.
  void put(const std::vector<TuneEntry>& entries);
  /// A copy, the last used first.
  std::vector<TuneEntry> entries() const;
  std::size_t size() const;
  std::size_t limit() const;
  void set_limit(std::size_t limit);
  void clear();

 private:
  using Entries = std::list<TuneEntry>;
  void put_locked(TuneEntry entry);
  void shrink();

  mutable std::mutex mutex_;
  std::size_t limit_;
  Entries entries_;  // the last used first
  std::unordered_map<std::string, Entries::iterator> places_;
};

/// The JSON text of entries.
std::string tuning_text(const std::vector<TuneEntry>& entries);
/// The entries of a file. Throws FileError naming it.
std::vector<TuneEntry> read_tuning(const std::string& path, ReadOptions options = {});

}  // namespace pleat::ops
