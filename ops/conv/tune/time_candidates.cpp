#include "pleat/ops/conv/tune/time_candidates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/cuda.h"

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
std::vector<double> sample(const std::function<void()>& run, Stopwatch& stopwatch, const TuneOptions& how,
                           double best) {
  constexpr double shortest_sample = 1;
  constexpr double most_runs = 50;
  constexpr double too_slow = 3;
  for (int i = 0; i < how.warmups; ++i) run();
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
  while (samples.size() < static_cast<std::size_t>(how.samples))
    samples.push_back(stopwatch.measure(all) / runs);
  return samples;
}

}  // namespace

bool is_timing() { return timing_candidates; }

std::unique_ptr<Stopwatch> stopwatch_for(Device device) {
  if (device.is_cuda()) return std::make_unique<EventStopwatch>(device);
  return std::make_unique<ClockStopwatch>();
}

std::vector<ConvCandidate> conv_candidates(const ConvCall& call, const std::string& wanted) {
  const std::string wanted_name = wanted.substr(0, wanted.find(':'));
  std::vector<ConvCandidate> candidates;
  std::optional<ConvCandidate> reference;
  std::set<std::string_view> seen;
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    if (!wanted.empty() && implementation->name() != wanted_name) continue;
    if (!implementation->unsupported(call.problem, call.pass).empty()) continue;
    if (!seen.insert(implementation->name()).second) continue;  // one name may stand for several
    const std::string name(implementation->name());
    const auto add = [&](const std::string& requested) {
      ConvCandidate candidate{requested, choose_conv(call.op, call.problem, call.pass, requested)};
      if (implementation == &reference_conv())
        reference = std::move(candidate);
      else
        candidates.push_back(std::move(candidate));
    };
    if (wanted.size() > wanted_name.size()) {
      add(wanted);  // names a plan, too
      continue;
    }
    try {
      const auto plans = implementation->plans(solved_problem(call.problem, *implementation), call.pass);
      for (const std::string& plan : plans) add(name + ':' + plan);
      if (plans.empty()) add(name);
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      candidates.push_back({name, nullptr, error.what()});
    }
  }
  if (candidates.empty() && reference.has_value()) candidates.push_back(std::move(*reference));
  return candidates;
}

std::vector<ConvTiming> time_candidates(const ConvCall& call, const std::vector<ConvCandidate>& candidates,
                                        Stopwatch& stopwatch, const TuneOptions& how) {
  const RecordFunction range(call.op, ".tune");
  const TimingScope guard;
  std::vector<ConvTiming> timings;
  std::vector<ConvTiming> failures;
  std::exception_ptr first_error;
  double best = std::numeric_limits<double>::infinity();
  for (const ConvCandidate& candidate : candidates) {
    ConvTiming timing{.pass = call.pass, .implementation = candidate.name, .failure = candidate.failure};
    try {
      if (candidate.implementation == nullptr) throw DeviceError(candidate.failure);
      const auto run = [&] { call.run(*candidate.implementation); };
      timing.workspace_bytes = candidate.implementation->workspace_bytes(
          solved_problem(call.problem, *candidate.implementation), call.pass);
      const std::vector<double> samples = sample(run, stopwatch, how, best);
      timing.milliseconds = median(samples);
      timing.fastest = *std::min_element(samples.begin(), samples.end());
      if (timing.milliseconds > 0)
        timing.gflops = static_cast<double>(call.problem.flops()) / timing.milliseconds / 1e6;
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
                   [](const ConvTiming& a, const ConvTiming& b) { return a.milliseconds < b.milliseconds; });
  timings.insert(timings.end(), failures.begin(), failures.end());
  return timings;
}

}  // namespace pleat::ops
