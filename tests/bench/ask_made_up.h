#pragma once

#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"

namespace pleat::test {

/// A time as if it had been measured: quartiles at `spread` of the median below and above it.
inline bench::Time made_up(double milliseconds, double spread = 0.02) {
  bench::Time time = bench::ask::time_of({1e-3 * milliseconds});
  time.lower_quartile = time.median * (1 - spread);
  time.upper_quartile = time.median * (1 + spread);
  time.first_call = time.median;
  return time;
}

/// All sentences in one text.
inline std::string joined_text(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + '\n';
  return text;
}

inline bool contains(const std::vector<std::string>& sentences, const std::string& part) {
  return joined_text(sentences).find(part) != std::string::npos;
}

}  // namespace pleat::test
