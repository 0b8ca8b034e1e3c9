#pragma once

#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"

namespace pleat::test {

/// A time as if it had been measured in nine rounds, which lie by up to `spread` of the median below and
/// above it; `falling`: the longest first, so that the ratio to one that is not is as uncertain as the
/// rounds.
inline bench::Time made_up(double milliseconds, double spread = 0.02, bool falling = false) {
  std::vector<double> rounds;
  for (int round = -4; round <= 4; ++round)
    rounds.push_back(1e-3 * milliseconds * (1 + spread * (falling ? -round : round) / 4));
  return bench::ask::time_of(rounds);
}

/// Whether one of the sentences contains a text.
inline bool contains(const bench::ask::Strings& sentences, const std::string& part) {
  for (const std::string& sentence : sentences)
    if (sentence.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace pleat::test
