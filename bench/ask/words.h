#pragma once

#include <string>
#include <vector>

#include "pleat/bench/record.h"

/// From times to sentences: what may be said about two of them, and how.

namespace pleat::bench::ask {

/// Of single runs, in seconds. Throws ValueError for none.
Time time_of(const std::vector<double>& runs);
/// One after the other: medians and quartiles added, which makes the quartiles a little too wide.
Time joined(const Time& a, const Time& b);

/// "12.3 ms"; with a ~ when the quartiles are more than a tenth of the median apart.
std::string text(const Time& time);

/// a / b, and between what the quartiles leave it.
struct Ratio {
  double value = 0;
  double low = 0;
  double high = 0;
};
Ratio ratio(const Time& a, const Time& b);

/// How a compares with b. Level: medians within 5 % of each other, which on a machine with other work means
/// nothing. Unclear: further apart, but their quartiles overlap.
enum class Relation : unsigned char { shorter, level, unclear, longer };
Relation relate(const Time& a, const Time& b);

/// A comparison as part of a sentence, the longer one first:
/// "unfold takes 2.3 times as long as direct (4.60 ms against 2.00 ms, quartiles 2.10 to 2.50)",
/// "unfold and direct are level (4.60 ms and 4.50 ms, ratio 1.02, quartiles 0.95 to 1.10)", or
/// "unfold and direct cannot be told apart in the noise (...)".
std::string comparison(const std::string& a, const Time& time_a, const std::string& b, const Time& time_b);

/// "2.3", "1.25", "140": a ratio with as many digits as one reads.
std::string factor_text(double factor);
/// "12 %" of a whole; "under 1 %".
std::string percent(double part, double whole);
/// "3.1e-07"; 0 is "0".
std::string error_text(double error);

/// "a", "a and b", "a, b and c".
std::string list_text(const std::vector<std::string>& words);

}  // namespace pleat::bench::ask
