// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"

/// Which of several ways to compute one thing is the fastest here, found by timing them. Knows no operation:
/// ops/conv/tune/ times convolutions with it.

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
  std::function<void()> run;                 ///< null: it failed before it could be timed
  std::function<int64_t()> workspace_bytes;  ///< beside operands and result
  std::string failure = {};
};

/// What a candidate took.
struct CandidateTime {
  std::string name;
  double milliseconds = 0;  ///< median of the samples
  double fastest = 0;
  int64_t workspace_bytes = 0;
  std::string failure = {};  ///< why it could not be timed; empty when it was
};

/// Times candidates one after another: `warmups` runs that do not count, then `samples` of as many runs as
/// fill a millisecond (50 at most). One whose first sample takes over three times the best median so far gets
/// no more. Returns the fastest first, failures last. DeviceLostError is passed on; when all fail, so is the
/// first error. `op` names the range in a profile.
std::vector<CandidateTime> time_candidates(const char* op, const std::vector<Candidate>& candidates,
                                           Stopwatch& stopwatch, int warmups, int samples);

/// Whether this thread is timing candidates. What a candidate itself calls is not tuned then.
bool is_timing();

/// Everything on which a timing depends, as text: what a file has is compared as it is.
struct TuneKey {
  std::string machine;   ///< "NVIDIA H200 sm_90", "AMD EPYC 9654, 16 threads"
  std::string versions;  ///< of Pleat and the libraries
  std::string problem;   ///< the problem and the conditions of the call

  /// All of it, a line each.
  std::string text() const { return machine + '\n' + versions + '\n' + problem; }
  bool operator==(const TuneKey&) const = default;
};

/// The key of a problem on a device, now.
TuneKey tune_key(Device device, std::string problem);

}  // namespace pleat::ops
