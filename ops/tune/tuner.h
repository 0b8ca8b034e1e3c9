#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "pleat/core/files/read_options.h"

/// What is known of the speed of implementations here, found by timing them. Convolutions and batch
/// normalisations whose policy has `benchmark` use it and add to it; `tune_conv` adds to it, too.
///
/// It is kept for the process by everything that speed depends on: the whole problem (sizes, types, formats
/// ...), the pass, what the call and the policy ask for, the device's or CPU's model, the number of threads
/// and the versions of the libraries. All functions may be called from several threads; one problem is timed
/// at a time.

namespace pleat::ops {

/// What one implementation took for one pass.
struct Timing {
  std::string pass = {};  ///< "forward", "backward_input"
  /// As the `implementation` of a call takes it: "unfold", or with a plan "cudnn:eng37_k2=5".
  std::string implementation = {};
  double milliseconds =
      0;  ///< median of the samples; of a whole call, conversions of operands and result included
  double fastest = 0;           ///< milliseconds of the fastest sample
  int64_t workspace_bytes = 0;  ///< beside operands and result
  double gflops = 0;  ///< 10^9 floating-point operations a second at the median, padding taps counted; 0
                      ///< where operations are not counted
  std::string failure = {};  ///< why it could not be timed (out of memory ...); empty when it was

  bool operator==(const Timing&) const = default;
};

/// "forward         unfold                  0.412 ms  (best 0.405)   182.1 GFLOP/s": a line of the table.
std::string describe(const Timing& timing);

struct TuneOptions {
  int warmups = 2;  ///< runs that are not timed
  /// Timed samples, each of as many runs as fill a millisecond (50 at most). An implementation whose first
  /// sample takes over three times the best median so far gets no more.
  int samples = 7;
};

/// What tuning has found in this process.
class Tuner {
 public:
  /// Problems that are known: one for each pass.
  static std::size_t size();
  /// The most that are kept; those used longest ago go first. 4,096 at the start. Throws ValueError below 1.
  static std::size_t limit();
  static void set_limit(std::size_t most);
  static void clear();
  /// All that is known of this machine and of others, as lines for people.
  static std::string table();

  /// Writes all that is known as JSON; the file is replaced as a whole or not at all. Throws FileError.
  static void save(const std::filesystem::path& path);
  /// Adds what `save` wrote and returns the number of problems. Those of other machines and versions are
  /// kept, but do not match here. Throws FileError, with nothing changed, unless the file is whole and takes
  /// no more memory than `options` allow.
  static std::size_t load(const std::filesystem::path& path, ReadOptions options = {});
};

}  // namespace pleat::ops
