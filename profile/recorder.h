// Private header: not installed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/record_function.h"
#include "pleat/profile/device_tracer.h"
#include "pleat/profile/profile.h"

namespace pleat::profile {

/// Nanoseconds of the steady clock.
int64_t steady_now();

struct RecorderOptions {
  bool shapes = true;
  bool memory = false;
  bool modules = true;
  bool nvtx = false;
};

/// The log of a thread. Parents are indices into `events`, which are in the order of their
/// beginning.
struct ThreadLog {
  /// Which does not move them when it grows. `end` is -1 for those that were open when recording ended.
  std::deque<Event> events;
  std::vector<MemoryChange> memory;
};

struct Recording {
  int64_t start = 0;  ///< of the steady clock, as all times in it
  int64_t end = 0;
  std::vector<ThreadLog> threads;  ///< the one that called `stop` first
  DeviceTrace device;
  std::vector<std::string> warnings;
};

/// Makes a profile of what was recorded: one list of events with their children, links from nodes of the tape
/// to the ops that recorded them, from ranges to what they launched on GPUs, from ops to modules.
Profile assemble(Recording recording);

/// Records all ranges, with a log for each thread. The process has one, which is never destroyed.
class Recorder final : public RangeObserver {
 public:
  static Recorder& instance();

  /// Throws Error when it is recording already.
  void start(RecorderOptions options, std::unique_ptr<DeviceTracer> tracer);
  /// Drops the recording so far and continues. Ranges that are open now are not part of it.
  void restart();
  Recording stop();

  uint64_t begin(const RangeStart& start) noexcept override;
  void end(uint64_t token) noexcept override;
  void add(uint64_t token, const RangeDetails& details) noexcept override;
  void recorded(std::string_view name, uint64_t sequence) noexcept override;
  void memory(const void* address, int64_t bytes, Device device) noexcept override;

 private:
  struct Log;
  struct LogOwner;

  Recorder() = default;
  Log* own_log();
  void leave_other_threads(const Log* own);
  bool prepare(Log& log);
  template <class Work>
  void with_log(const Work& work) noexcept;
  void close(Log& log, std::size_t depth, int64_t now);
  uint64_t open(Log& log, const RangeStart& start);

  std::atomic<bool> active_{false};
  std::atomic<uint64_t> session_{0};
  RecorderOptions options_;               ///< changes only while nothing is active
  std::unique_ptr<DeviceTracer> tracer_;  ///< likewise
  int64_t start_time_ = 0;

  ProcessMark process_;
  ForkMutex<std::mutex> logs_mutex_;
  std::vector<std::shared_ptr<Log>> logs_;
  uint64_t threads_seen_ = 0;
};

}  // namespace pleat::profile
