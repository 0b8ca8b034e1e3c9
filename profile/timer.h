#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/profile/measurement.h"

/// Times functions. The Timer waits for the device, calls once before it measures, and repeats
/// until the clock's own cost and granularity do not matter.
///
///   benchmark::Timer timer{{.device = x.device()}};
///   std::cout << timer.measure([&] { conv2d(x, w); });

namespace pleat::benchmark {

/// The clock of a Timer. Tests use one of their own.
class Clock {
 public:
  /// Seconds between `start` and `stop`.
  struct Elapsed {
    double wall = 0;               ///< by the steady clock
    std::optional<double> device;  ///< between device events, where the device has them
  };

  virtual ~Clock() = default;
  /// Waits for the device, then begins to count.
  virtual void start() = 0;
  /// Waits for the device and returns the time since `start`.
  virtual Elapsed stop() = 0;
  /// Evicts the data of earlier runs from the last-level cache.
  virtual void empty_caches() = 0;
};

/// The clock of a device: on the CPU the steady clock; on a GPU the steady clock and events in the current
/// stream. Throws DeviceError when there is no such device.
std::shared_ptr<Clock> device_clock(Device device);

/// Bytes of the CPU's last-level cache as the system reports them; 0 where it does not.
int64_t last_cache_bytes();

/// A function to time.
struct Subject {
  std::function<void()> run;
  /// Work that has to be done once before the first run and is no part of it: a search for the fastest
  /// implementation. Timed apart.
  std::function<void()> tune = {};
  std::string label = {};  ///< see Measurement
  std::string sub_label = {};
  std::string description = {};
};

struct TimerOptions {
  Device device = {};
  int threads = 0;            ///< set while it measures; 0: as many as are set
  double min_run_time = 0.2;  ///< seconds that all timed runs of a subject take together, at least
  int64_t min_blocks = 5;     ///< blocks, at least: quartiles of fewer say little
  /// Empties the caches before each run, so that operands come from memory. Each run is then a block of its
  /// own.
  bool cold_cache = false;
  std::shared_ptr<Clock> clock = nullptr;  ///< null: that of the device
  /// Told after each block which share of the time and blocks of all subjects is done, 0 to 1, and 1 at the
  /// end. Not timed.
  std::function<void(double share)> on_progress = nullptr;
  /// Of measure_in_turns. With it all subjects take part in all rounds, so that blocks with the same index
  /// were timed together and can be compared in pairs. After `min_blocks` rounds it is asked with what there
  /// is by then, and as long as it says true there are as many rounds more.
  std::function<bool(const std::vector<Measurement>&)> wants_more = nullptr;
};

/// Times functions in the manner of `torch.utils.benchmark.Timer.blocked_autorange`: a first call, then
/// blocks of growing length, which warm up, until a block is 10,000 times as long as reading the clock (or a
/// twentieth of `min_run_time`) and a thousandth of `min_run_time`; then blocks of that length until the time
/// is up. The median over blocks is what counts.
class Timer {
 public:
  /// Throws ValueError for invalid times, blocks or threads, DeviceError when there is no such
  /// device.
  explicit Timer(TimerOptions options = {});

  /// Throws ValueError when the subject has no function, and the exceptions of the function.
  Measurement measure(const Subject& subject) const;
  Measurement measure(std::function<void()> run) const;

  /// Times several subjects interleaved, block by block, in alternating order, so that other work on
  /// the machine disturbs all alike and their ratios are valid. A block takes at least a twentieth
  /// of `min_run_time`. A subject with enough time and blocks is not run again, unless there is
  /// `wants_more`; then a block takes at least `min_run_time / min_blocks`. Throws as `measure`.
  std::vector<Measurement> measure_in_turns(const std::vector<Subject>& subjects) const;

 private:
  std::vector<Measurement> measure_all(std::span<const Subject> subjects, double block_time,
                                       bool all_together) const;

  TimerOptions options_;
};

}  // namespace pleat::benchmark
