// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/ops/implementations.h"
#include "pleat/ops/tune/cache.h"
#include "pleat/ops/tune/tuner.h"

/// Which of several ways to compute one thing is the fastest here, found by timing them. Knows no operation:
/// convolutions and batch normalisations use it.

namespace pleat::ops {

/// Measures the time of work on one device.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Milliseconds that `work` took until all of it was done.
  virtual double measure(const std::function<void()>& work) = 0;
};

/// Events on a GPU's current stream, the steady clock on the CPU.
std::unique_ptr<Stopwatch> stopwatch_for(Device device);

/// One way to compute it.
struct Candidate {
  std::string name;
  std::function<void()> run;  ///< null: it failed before it could be timed
  std::function<int64_t()> workspace_bytes = [] { return int64_t{0}; };  ///< beside operands and result
  std::string failure = {};
};

/// What the candidates compute: `op` names the range of their timing in a profile.
struct TimedPass {
  const char* op;
  std::string_view pass;
  double flops = 0;  ///< of one run; 0: not counted
};

/// Times candidates one after another, as `how` says. Returns the fastest first, failures last.
/// DeviceLostError is passed on; when all fail, so is the first error.
std::vector<Timing> time_candidates(const TimedPass& timed, const std::vector<Candidate>& candidates,
                                    Stopwatch& stopwatch, const TuneOptions& how);

/// Whether this thread is timing candidates. What a candidate itself calls is not tuned then.
bool is_timing();

/// Calls `time`, one thread at a time, and keeps its result as what is known for the key.
std::vector<Timing> time_and_keep(const TuneKey& key, const std::function<std::vector<Timing>()>& time);

/// The name of the fastest implementation for a key: of what is known, if it `exists` here (a file may say
/// anything), else by time_and_keep; without `time` "".
std::string fastest_name(const TuneKey& key, const std::function<bool(const std::string&)>& exists,
                         const std::function<std::vector<Timing>()>& time);

/// The implementation of that name; where none is known, what Implementations::get gives for `requested`.
template <class I>
std::shared_ptr<const I> fastest(const Implementations<I>& all, const char* op,
                                 const typename I::Problem& problem, typename I::Pass pass,
                                 const std::string& requested, const TuneKey& key,
                                 const std::function<std::vector<Timing>()>& time) {
  std::shared_ptr<const I> known;
  const auto exists = [&](const std::string& name) {
    known = all.find(problem, pass, name);
    return known != nullptr;
  };
  const std::string name = fastest_name(key, exists, time);
  return known != nullptr ? known : all.get(op, problem, pass, name.empty() ? requested : name);
}

}  // namespace pleat::ops
