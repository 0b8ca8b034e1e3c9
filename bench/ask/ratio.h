#pragma once

#include <string>
#include <vector>

#include "pleat/bench/record.h"

/// How much longer one computation takes than another, as far as measurements tell.

namespace pleat::bench::ask {

/// What a ratio of times says.
enum class Verdict : unsigned char {
  level,      ///< within 5 % of each other
  differs,    ///< one takes longer
  undecided,  ///< it may be either: there were too few rounds for this noise
  disturbed  ///< one takes longer, but how much its rounds do not tell: they scatter by half and more, or the
             ///< fastest of them, which other work disturbs least, tell another story
};

/// How many times as long one takes as another that was timed in turns with it, round by round: the median of
/// the ratios of rounds, and between which it lies with 99 % confidence. What slows the machine down for a
/// while slows both, and so does not widen the interval.
struct Ratio {
  double median = 1, low = 1, high = 1;
  double fastest = 1;  ///< of the fastest round of each

  Verdict verdict() const;
  /// As part of a sentence: "takes 2.30 times as long (2.10 to 2.50)", "is level (0.98 to 1.04)", "cannot be
  /// told apart in the noise (0.87 to 1.95)", "was disturbed (1.53 to 10.42; fastest rounds 1.31)".
  std::string text() const;
};

/// Of two times whose `rounds` with the same index were measured together; those that only one has do not
/// count. The interval is the distribution-free one of a median: from the k-th smallest to the k-th largest
/// of n ratios, which miss it with probability 2 P(B(n, 1/2) < k) at most (H. A. David, H. N. Nagaraja, Order
/// Statistics, 2003, section 7.1); below 8 rounds, from the smallest to the largest, with less confidence.
/// Throws ValueError when one has no rounds.
Ratio ratio(const Time& time, const Time& other);

/// Of single runs, in seconds; they are its rounds. Throws ValueError for none.
Time time_of(const std::vector<double>& runs);
/// So many times as long.
Time scaled(Time time, double factor);
/// The times of two things, one after the other: rounds with the same index are added, medians and quartiles
/// are those of the sums.
Time added(const Time& one, const Time& other);

}  // namespace pleat::bench::ask
