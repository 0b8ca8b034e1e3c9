#include "pleat/ops/tune/candidates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/system/process.h"

/// Times candidates, by a clock or by a GPU's events, one thread at a time. Says of which machine and
/// versions a time is.

namespace pleat::ops {
namespace {

thread_local bool timing_candidates = false;

class TimingScope {
 public:
  TimingScope() : previous_(std::exchange(timing_candidates, true)) {}
  ~TimingScope() { timing_candidates = previous_; }
  TimingScope(const TimingScope&) = delete;
  TimingScope& operator=(const TimingScope&) = delete;

 private:
  bool previous_;
};

class ClockStopwatch : public Stopwatch {
 public:
  double measure(const std::function<void()>& work) override {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
};

class EventStopwatch : public Stopwatch {
 public:
  explicit EventStopwatch(Device device)
      : start_({.device = device, .timing = true}), end_({.device = device, .timing = true}) {}
  double measure(const std::function<void()>& work) override {
    start_.record();
    work();
    end_.record();
    return cuda::elapsed_ms(start_, end_);
  }

 private:
  cuda::Event start_, end_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Milliseconds a run, one number for each sample.
std::vector<double> sample(const std::function<void()>& run, Stopwatch& stopwatch, int warmups, int count,
                           double best) {
  constexpr double shortest_sample = 1;
  constexpr double most_runs = 50;
  constexpr double too_slow = 3;
  for (int i = 0; i < warmups; ++i) run();
  const double once = stopwatch.measure(run);
  const int runs = once >= shortest_sample ? 1
                   : once * most_runs <= shortest_sample
                       ? static_cast<int>(most_runs)
                       : static_cast<int>(std::ceil(shortest_sample / once));
  const auto all = [&] {
    for (int i = 0; i < runs; ++i) run();
  };
  std::vector<double> samples{runs == 1 ? once : stopwatch.measure(all) / runs};
  if (samples[0] > too_slow * best) return samples;
  while (samples.size() < static_cast<std::size_t>(count)) samples.push_back(stopwatch.measure(all) / runs);
  return samples;
}

std::string machine_text(Device device) {
  if (device.is_cuda()) {
    const cuda::DeviceProperties& gpu = cuda::properties(device);
    return fmt::format("{} sm_{}{}", gpu.name, gpu.major, gpu.minor);
  }
  static const auto& model = *new std::string(cpu_model());
  return fmt::format("{}, {} threads", model, num_threads());
}

std::string versions_text(Device device) {
  constexpr const char* pleat = "pleat " PLEAT_VERSION;
  if (device.is_cpu()) return pleat;
  static const auto& versions = *new cuda::Versions(cuda::versions());
  return fmt::format("{}, CUDA {}, driver {}, cuBLAS {}, cuDNN {}", pleat, versions.runtime, versions.driver,
                     versions.cublas, versions.cudnn);
}

/// Held while candidates are timed: two threads at a time would slow each other down.
auto& timing_mutex() {
  static auto& mutex = *new ForkMutex<std::mutex>(AtFork::renew);
  return mutex;
}

std::vector<Timing> keep(const TuneKey& key, std::vector<Timing> timings) {
  known_timings().put(TuneEntry{key, timings});
  return timings;
}

}  // namespace

std::string cpu_model() {
  const std::string model = system::cpu_model();
  return model.empty() ? "unknown CPU" : model;
}

bool is_timing() { return timing_candidates; }

std::unique_ptr<Stopwatch> stopwatch_for(Device device) {
  if (device.is_cuda()) return std::make_unique<EventStopwatch>(device);
  return std::make_unique<ClockStopwatch>();
}

std::vector<Timing> time_candidates(const TimedPass& timed, const std::vector<Candidate>& candidates,
                                    Stopwatch& stopwatch, const TuneOptions& how) {
  const RecordFunction range(timed.op, ".tune");
  const TimingScope guard;
  std::vector<Timing> timings, failures;
  std::exception_ptr first_error;
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates) {
    Timing timing{
        .pass = std::string(timed.pass), .implementation = candidate.name, .failure = candidate.failure};
    try {
      if (candidate.run == nullptr) throw DeviceError(candidate.failure);
      timing.workspace_bytes = candidate.workspace_bytes();
      const std::vector<double> taken = sample(candidate.run, stopwatch, how.warmups, how.samples, best);
      timing.milliseconds = median(taken);
      timing.fastest = *std::min_element(taken.begin(), taken.end());
      if (timing.milliseconds > 0) timing.gflops = timed.flops / timing.milliseconds / 1e6;
      best = std::min(best, timing.milliseconds);
      timings.push_back(std::move(timing));
    } catch (const DeviceLostError&) {
      throw;
    } catch (const std::exception& error) {
      if (first_error == nullptr) first_error = std::current_exception();
      timing.failure = error.what();
      failures.push_back(std::move(timing));
    }
  }
  if (timings.empty() && first_error != nullptr) std::rethrow_exception(first_error);
  std::stable_sort(timings.begin(), timings.end(),
                   [](const Timing& a, const Timing& b) { return a.milliseconds < b.milliseconds; });
  timings.insert(timings.end(), failures.begin(), failures.end());
  return timings;
}

TuneKey tune_key(Device device, std::string problem) {
  return {machine_text(device), versions_text(device), std::move(problem)};
}

std::vector<Timing> time_and_keep(const TuneKey& key, const std::function<std::vector<Timing>()>& time) {
  const std::lock_guard lock(timing_mutex());
  return keep(key, time());
}

std::string fastest_name(const TuneKey& key, const std::function<bool(const std::string&)>& exists,
                         const std::function<std::vector<Timing>()>& time) {
  const auto known = [&] {
    const std::optional<std::string> winner = known_timings().winner(key);
    return winner && exists(*winner) ? *winner : "";
  };
  if (const std::string winner = known(); !winner.empty() || time == nullptr) return winner;
  const std::lock_guard lock(timing_mutex());
  if (const std::string winner = known(); !winner.empty()) return winner;  // another thread was first
  return keep(key, time()).front().implementation;
}

}  // namespace pleat::ops
