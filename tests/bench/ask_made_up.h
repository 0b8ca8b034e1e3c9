#pragma once

#include <string>

#include "pleat/bench/ask/answer.h"

namespace pleat::test {

/// A time as if it had been measured: quartiles at `spread` of the median below and above it.
inline bench::Time made_up(double milliseconds, double spread = 0.02) {
  bench::Time time = bench::ask::time_of({1e-3 * milliseconds});
  time.lower_quartile = time.median * (1 - spread);
  time.upper_quartile = time.median * (1 + spread);
  return time;
}

/// Whether one of the sentences contains a text.
inline bool contains(const bench::ask::Strings& sentences, const std::string& part) {
  for (const std::string& sentence : sentences)
    if (sentence.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace pleat::test
