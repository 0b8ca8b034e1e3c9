#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/options.h"

/// Which implementation is the fastest for a convolution here, found by timing all of them.
///
///   for (const auto& timing : ops::tune_conv(x, w, {.padding = 1})) std::cout << describe(timing) << '\n';
///   ConvPolicy policy{{.benchmark = true}};  // the fastest, timed at the first use of each problem and pass
///   ops::ConvTuner::save("tuned.json");
///
/// What was found is kept for the process by everything that speed depends on: the whole problem (sizes,
/// types, formats, precision, bias), the pass, the implementation that was asked for, `deterministic`, the
/// workspace limit, the device's or CPU's model, the number of threads and the versions of the libraries.
/// All functions may be called from several threads; one problem is timed at a time.

namespace pleat::ops {

/// What one implementation took for one pass.
struct ConvTiming {
  ConvPass pass = ConvPass::forward;
  /// As the `implementation` of a call takes it: "unfold", or with a plan "cudnn:eng37_k2=5".
  std::string implementation = {};
  double milliseconds =
      0;  ///< median of the samples; of a whole call, conversions of operands and result included
  double fastest = 0;           ///< milliseconds of the fastest sample
  int64_t workspace_bytes = 0;  ///< beside operands and result
  double gflops = 0;         ///< 10^9 floating-point operations a second at the median, padding taps counted
  std::string failure = {};  ///< why it could not be timed (out of memory ...); empty when it was

  bool operator==(const ConvTiming&) const = default;
};

/// "forward         unfold                  0.412 ms  (best 0.405)   182.1 GFLOP/s": a line of the table.
std::string describe(const ConvTiming& timing);

struct TuneOptions {
  int warmups = 2;  ///< runs that are not timed
  /// Timed samples, each of as many runs as fill a millisecond (50 at most). An implementation whose first
  /// sample takes over three times the best median so far gets no more.
  int samples = 7;
};

/// Times every implementation that supports the call (each of cuDNN's plans within the workspace limit; the
/// reference only where there is no other; with a name in `options`, that implementation's plans alone), each
/// pass apart. Returns forward, backward_input and backward_weight, of each the fastest first and those that
/// failed last. The arguments are read only. The results replace what was known of these problems, and a
/// policy with `benchmark` uses them. Throws what the convolution throws, ValueError for numbers of runs that
/// make no sense, and the error of the implementation when none succeeds.
std::vector<ConvTiming> tune_conv(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  const ConvOptions& options = {}, TuneOptions how = {});
std::vector<ConvTiming> tune_conv(const Tensor& x, const Tensor& w, const ConvOptions& options = {},
                                  TuneOptions how = {});

/// What tuning has found in this process.
class ConvTuner {
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
