#include "pleat/profile/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/profile/cache_size.h"

namespace pleat::benchmark {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Bytes to walk through so that nothing else stays in a cache of this size: twice as many, since replacement
/// is not exact.
Tensor eviction_buffer(int64_t cache_bytes, Device device) {
  return zeros({2 * cache_bytes / 4}, {.dtype = float32, .device = device});
}

class CpuClock : public Clock {
 public:
  void start() override { start_ = seconds_now(); }
  Elapsed stop() override { return {seconds_now() - start_, std::nullopt}; }

  void empty_caches() override {
    if (!buffer_.defined()) {
      constexpr int64_t mebibyte = int64_t{1} << 20;
      const int64_t cache = last_cache_bytes();
      buffer_ = eviction_buffer(cache > 0 ? std::clamp(cache, 8 * mebibyte, 256 * mebibyte) : 64 * mebibyte,
                                Device());
    }
    // Written by all threads: each has a cache of its own, too.
    ops::fill(buffer_, ++value_);
  }

 private:
  double start_ = 0;
  Tensor buffer_;
  int value_ = 0;
};

class CudaClock : public Clock {
 public:
  explicit CudaClock(Device device)
      : device_(device),
        begin_({.device = device, .timing = true}),
        end_({.device = device, .timing = true}) {}

  void start() override {
    cuda::synchronize(device_);
    start_ = seconds_now();
    begin_.record();
  }

  Elapsed stop() override {
    end_.record();
    cuda::synchronize(device_);
    const double wall = seconds_now() - start_;
    return {wall, 1e-3 * cuda::elapsed_ms(begin_, end_)};
  }

  void empty_caches() override {
    if (!buffer_.defined()) buffer_ = eviction_buffer(cuda::properties(device_).l2_cache, device_);
    ops::fill(buffer_, ++value_);
  }

 private:
  Device device_;
  cuda::Event begin_;
  cuda::Event end_;
  double start_ = 0;
  Tensor buffer_;
  int value_ = 0;
};

/// One subject on its way to a measurement.
class Session {
 public:
  Session(const TimerOptions& options, Clock& clock, const Subject& subject)
      : options_(options), clock_(clock), subject_(subject) {
    check<ValueError>(static_cast<bool>(subject.run), "timer: the subject must have something to run");
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

std::shared_ptr<Clock> device_clock(Device device) {
  if (device.is_cpu()) return std::make_shared<CpuClock>();
  cuda::check_device("timer", device);
  return std::make_shared<CudaClock>(device);
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
  check<ValueError>(subject.run != nullptr, "timer: there is nothing to run, the function is empty");
  const ThreadsScope threads(options_.threads);
  const cuda::DeviceGuard device(options_.device);
  Session session(options_, *options_.clock, subject);
  session.prepare(options_.min_run_time / 1000);
  while (session.share_done() < 1) {
    session.measure_block();
    if (options_.on_progress) options_.on_progress(session.share_done());
  }
  return session.result();
}

Measurement Timer::measure(std::function<void()> run) const {
  return measure(Subject{.run = std::move(run)});
}

std::vector<Measurement> Timer::measure_in_turns(const std::vector<Subject>& subjects) const {
  const ThreadsScope threads(options_.threads);
  const cuda::DeviceGuard device(options_.device);
  for (const Subject& subject : subjects)
    check<ValueError>(subject.run != nullptr, "timer: there is nothing to run, the function is empty");
  std::vector<Session> sessions;
  for (const Subject& subject : subjects) sessions.emplace_back(options_, *options_.clock, subject);
  const bool all_together = options_.wants_more != nullptr;
  const double block_time =
      options_.min_run_time / (all_together ? static_cast<double>(options_.min_blocks) : 20);
  for (Session& session : sessions) session.prepare(block_time);

  std::vector<Session*> waiting;
  for (Session& session : sessions) waiting.push_back(&session);
  const auto run_round = [&] {
    for (Session* session : waiting) {
      session->measure_block();
      if (options_.on_progress) options_.on_progress(share_done(sessions));
    }
    // Who comes after whom changes, since a run can leave caches and clocks in a state that the next one
    // feels.
    std::reverse(waiting.begin(), waiting.end());
  };
  if (all_together) {
    do
      for (int64_t round = 0; round < options_.min_blocks; ++round) run_round();
    while (options_.wants_more(results(sessions)));
  } else {
    while (!waiting.empty()) {
      run_round();
      std::erase_if(waiting, [](const Session* session) { return session->share_done() == 1; });
    }
  }
  return results(sessions);
}

}  // namespace pleat::benchmark
