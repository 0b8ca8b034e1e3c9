#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"

namespace pleat::benchmark {

/// The result of a Timer. All times are seconds.
struct Measurement {
  /// The subject; Compare makes a table of each `label`, a row of each `sub_label` and a column of
  /// each `description`.
  std::string label;
  std::string sub_label;
  std::string description;

  Device device;
  int threads = 1;          ///< threads that Pleat could use on the CPU
  bool cold_cache = false;  ///< whether caches were emptied before each run
  int64_t block_size = 1;   ///< runs between two readings of the clock

  /// Seconds of one run, the average of each block: on a GPU between device events, else by the steady clock.
  std::vector<double> times;
  /// The same by the steady clock, from before the first launch until the device is done. On the CPU equal to
  /// `times`.
  std::vector<double> wall_times;
  double first_call = 0;  ///< the first run of all, which allocates, loads and chooses; by the steady clock
  double tuning = 0;      ///< the time of `Subject::tune` before that; 0 without

  /// Timed runs: blocks times block size.
  int64_t runs() const { return static_cast<int64_t>(times.size()) * block_size; }
  /// The time below which a share `q` (0 to 1) of the blocks lies, interpolated. Throws ValueError without
  /// times, or for another q.
  double quantile(double q) const;
  double median() const { return quantile(0.5); }
  double lower_quartile() const { return quantile(0.25); }
  double upper_quartile() const { return quantile(0.75); }
  /// Median by the steady clock.
  double wall_median() const;
  double mean() const;
  /// (upper - lower quartile) / median.
  double spread() const;
  /// Whether the quartiles are further apart than a tenth of the median, so that other work may
  /// have disturbed the runs.
  bool has_wide_spread() const { return spread() > 0.1; }
  /// The number of significant digits of the median, 1 to 4, from the 90 % confidence interval of
  /// the mean of the blocks between the quartiles (1.645 standard deviations / sqrt(n), at least 25
  /// ns).
  int significant_digits() const;
  /// Several lines for people: median, quartiles, runs, threads, first call, a warning when the spread is
  /// wide.
  std::string to_string() const;
};

/// Prints `to_string()`.
std::ostream& operator<<(std::ostream& out, const Measurement& measurement);

/// The quantile of numbers in any order, interpolated linearly between neighbours. Throws ValueError for no
/// numbers, or a q outside [0, 1].
double quantile(std::vector<double> values, double q);

/// A unit of time that suits values like this one: "ns", "µs", "ms" or "s" and its length in seconds.
struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit time_unit(double seconds);

/// "12.34 ms": `digits` significant ones, in the unit that suits.
std::string format_time(double seconds, int digits = 4);

/// The number with this many significant digits, never in exponential form: 1234 with 2 digits is "1200".
std::string format_significant(double value, int digits);

}  // namespace pleat::benchmark
