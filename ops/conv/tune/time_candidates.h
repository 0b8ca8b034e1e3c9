// Private header: not installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/tune/tune_cache.h"

namespace pleat::ops {

/// Takes the time of work on one device.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Milliseconds that `work` took until all of it was done.
  virtual double measure(const std::function<void()>& work) = 0;
};

/// Events on a GPU's current stream, the steady clock on the CPU.
std::unique_ptr<Stopwatch> stopwatch_for(Device device);

/// One that may win: an implementation, or one of its plans.
struct ConvCandidate {
  std::string name;
  std::shared_ptr<const ConvImplementation> implementation;  ///< null: it failed before it could be timed
  std::string failure = {};
};

/// All that support the call; those of one implementation when `wanted` names it. The reference is among them
/// only where it is wanted or alone.
std::vector<ConvCandidate> conv_candidates(const ConvCall& call, const std::string& wanted);

/// Times them one after another: the fastest first, failures last. DeviceLostError is passed on; when all
/// fail, so is the first error.
std::vector<ConvTiming> time_candidates(const ConvCall& call, const std::vector<ConvCandidate>& candidates,
                                        Stopwatch& stopwatch, const TuneOptions& how);

/// Whether this thread is timing candidates. Convolutions that a candidate itself calls are not tuned then.
bool is_timing();

/// Everything that the times of a call depend on, when `wanted` is the implementation asked for.
TuneKey tune_key(const ConvCall& call, const std::string& wanted);

}  // namespace pleat::ops
