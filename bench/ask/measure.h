#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/tensor/tensor.h"

/// What all questions measure with.

namespace pleat::bench::ask {

/// A computation to be timed. `tune` is what has to happen once before it and is no part of its time.
struct Way {
  std::string what;
  std::function<void()> run;
  std::function<void()> tune = {};
};

/// Times all ways in turns, so that what disturbs the machine disturbs all alike, and adds them to the
/// answer.
void time_in_turns(const AskOptions& options, const std::vector<Way>& ways, Answer& answer);

/// The time of that name. Throws ValueError when there is none.
const Time& time_of(const Answer& answer, const std::string& what);

/// Implementations of a convolution that are made for speed: all but the reference, the preferred first.
std::vector<std::string> fast_implementations(Device device);

/// What an answer's setup says with AskOptions::quick.
inline constexpr const char* quick_note = "Small sizes (--quick), for a first look.";

}  // namespace pleat::bench::ask
