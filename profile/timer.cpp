// The timer: how long a block of runs must be, whose turn it is, and when there is enough. Clocks of devices,
// too.
#include "pleat/profile/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/system/process.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::benchmark {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// On the CPU the steady clock alone.
class DeviceClock : public Clock {
 public:
  explicit DeviceClock(Device device) : device_(device) {
    if (device.is_cuda()) events_.emplace(event(), event());
  }

  void start() override {
    if (events_) cuda::synchronize(device_);
    start_ = seconds_now();
    if (events_) events_->first.record();
  }

  Elapsed stop() override {
    if (!events_) return {seconds_now() - start_, std::nullopt};
    events_->second.record();
    cuda::synchronize(device_);
    const double wall = seconds_now() - start_;
    return {wall, 1e-3 * cuda::elapsed_ms(events_->first, events_->second)};
  }

  void empty_caches() override {
    // Twice as many bytes as the cache has, since replacement is not exact. Written by all threads: each has
    // a cache of its own, too.
    if (!buffer_.defined()) buffer_ = zeros({2 * cache_bytes() / 4}, {.dtype = float32, .device = device_});
    ops::fill(buffer_, ++value_);
  }

 private:
  cuda::Event event() const { return cuda::Event({.device = device_, .timing = true}); }

  int64_t cache_bytes() const {
    if (events_) return cuda::properties(device_).l2_cache;
    constexpr int64_t mebibyte = int64_t{1} << 20;
    const int64_t cache = last_cache_bytes();
    return cache > 0 ? std::clamp(cache, 8 * mebibyte, 256 * mebibyte) : 64 * mebibyte;
  }

  Device device_;
  std::optional<std::pair<cuda::Event, cuda::Event>> events_;  ///< of a GPU: begin and end
  double start_ = 0;
  Tensor buffer_;
  int value_ = 0;
};

/// One subject on its way to a measurement.
class Session {
 public:
  Session(const TimerOptions& options, Clock& clock, const Subject& subject)
      : options_(options), clock_(clock), subject_(subject) {
    check<ValueError>(subject.run != nullptr, "timer: there is nothing to run, the function is empty");
    result_.label = subject.label;
    result_.sub_label = subject.sub_label;
    result_.description = subject.description;
    result_.device = options.device;
    result_.threads = num_threads();
    result_.cold_cache = options.cold_cache;
  }

  /// Tunes, calls once, and finds a block that takes `block_time`.
  void prepare(double block_time) {
    if (subject_.tune) {
      clock_.start();
      subject_.tune();
      result_.tuning = clock_.stop().wall;
    }
    result_.first_call = block(1).wall;
    if (options_.cold_cache) {
      block(1);
      return;
    }
    // Waiting for a GPU takes so long that blocks would be too few for quartiles. A twentieth is enough: its
    // events do not count the wait.
    const double long_enough = std::min(1e4 * clock_cost(), options_.min_run_time / 20);
    const double enough = std::max(block_time, long_enough);
    for (int64_t size = 1;;) {
      const double time = block(size).wall;
      if (time >= enough || time > options_.min_run_time || size >= most_runs) {
        result_.block_size = size;
        return;
      }
      // A first estimate may be far off, so it grows tenfold at most, and always.
      const double wanted = time > 0 ? 1.1 * static_cast<double>(size) * enough / time : 0;
      const double most = 10.0 * static_cast<double>(size);
      size =
          std::clamp(static_cast<int64_t>(wanted > 0 ? std::min(wanted, most) : most), size + 1, most_runs);
    }
  }

  void measure_block() {
    const Clock::Elapsed elapsed = block(result_.block_size);
    const auto runs = static_cast<double>(result_.block_size);
    result_.times.push_back(elapsed.device.value_or(elapsed.wall) / runs);
    result_.wall_times.push_back(elapsed.wall / runs);
    total_ += elapsed.wall;
  }

  /// Of the time and the blocks, 0 to 1.
  double share_done() const {
    const double blocks =
        static_cast<double>(result_.times.size()) / static_cast<double>(options_.min_blocks);
    const bool long_enough = total_ >= options_.min_run_time || result_.block_size >= most_runs;
    return std::min({1.0, blocks, long_enough ? 1 : total_ / options_.min_run_time});
  }

  const Measurement& result() const { return result_; }

 private:
  static constexpr int64_t most_runs = 10'000'000;  // for a function that takes no time at all

  Clock::Elapsed block(int64_t size) {
    if (options_.cold_cache) clock_.empty_caches();
    clock_.start();
    for (int64_t i = 0; i < size; ++i) subject_.run();
    return clock_.stop();
  }

  /// What it costs to start and stop: the median of five.
  double clock_cost() {
    std::vector<double> costs;
    for (int i = 0; i < 5; ++i) {
      clock_.start();
      costs.push_back(clock_.stop().wall);
    }
    return quantile(costs, 0.5);
  }

  const TimerOptions& options_;
  Clock& clock_;
  const Subject& subject_;
  Measurement result_;
  double total_ = 0;
};

double share_done(const std::vector<Session>& sessions) {
  double share = 0;
  for (const Session& session : sessions) share += session.share_done();
  return share / static_cast<double>(sessions.size());
}

std::vector<Measurement> results(const std::vector<Session>& sessions) {
  std::vector<Measurement> all;
  for (const Session& session : sessions) all.push_back(session.result());
  return all;
}

}  // namespace

int64_t last_cache_bytes() { return system::cache_bytes(); }

std::shared_ptr<Clock> device_clock(Device device) {
  if (device.is_cuda()) cuda::check_device("timer", device);
  return std::make_shared<DeviceClock>(device);
}

Timer::Timer(TimerOptions options) : options_(std::move(options)) {
  check<ValueError>(std::isfinite(options_.min_run_time) && options_.min_run_time >= 0,
                    "timer: min_run_time must be seconds of at least 0, got {}", options_.min_run_time);
  check<ValueError>(options_.min_blocks >= 1, "timer: min_blocks must be at least 1, got {}",
                    options_.min_blocks);
  check<ValueError>(options_.threads >= 0, "timer: threads must be at least 1 (or 0: as set), got {}",
                    options_.threads);
  if (options_.clock == nullptr) options_.clock = device_clock(options_.device);
}

Measurement Timer::measure(const Subject& subject) const {
  return measure_all({&subject, 1}, options_.min_run_time / 1000, false).front();
}

Measurement Timer::measure(std::function<void()> run) const {
  return measure(Subject{.run = std::move(run)});
}

std::vector<Measurement> Timer::measure_in_turns(const std::vector<Subject>& subjects) const {
  const bool all_together = options_.wants_more != nullptr;
  const double blocks = all_together ? static_cast<double>(options_.min_blocks) : 20;
  return measure_all(subjects, options_.min_run_time / blocks, all_together);
}

std::vector<Measurement> Timer::measure_all(std::span<const Subject> subjects, double block_time,
                                            bool all_together) const {
  const ThreadsScope threads(options_.threads);
  const cuda::DeviceGuard device(options_.device);
  std::vector<Session> sessions;
  for (const Subject& subject : subjects) sessions.emplace_back(options_, *options_.clock, subject);
  for (Session& session : sessions) session.prepare(block_time);

  std::vector<Session*> waiting;
  for (Session& session : sessions) waiting.push_back(&session);
  const auto run_round = [&] {
    for (Session* session : waiting) {
      session->measure_block();
      if (options_.on_progress) options_.on_progress(share_done(sessions));
    }
    // The order changes, since a run can leave caches and clocks in a state that the next one feels.
    std::ranges::reverse(waiting);
  };
  if (all_together) {
    do
      for (int64_t round = 0; round < options_.min_blocks; ++round) run_round();
    while (options_.wants_more(results(sessions)));
  }
  const auto is_done = [](const Session* session) { return session->share_done() == 1; };
  for (std::erase_if(waiting, is_done); !all_together && !waiting.empty(); std::erase_if(waiting, is_done))
    run_round();
  return results(sessions);
}

}  // namespace pleat::benchmark
