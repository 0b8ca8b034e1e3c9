#include "pleat/bench/ask/ratio.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/profile/measurement.h"

namespace pleat::bench::ask {
namespace {

constexpr double level_within = 1.05;
constexpr double confidence = 0.99;
constexpr double widest = 1.5;  // high / low of an interval from which something follows
constexpr double apart = 1.25;  // by which the fastest rounds may miss the interval

/// The k of ratio(): at least 1.
std::size_t rank_of_bound(std::size_t n) {
  // 2 P(B(n, 1/2) < k), summed up by k.
  double term = std::pow(0.5, static_cast<double>(n)), miss = 0;
  for (std::size_t k = 1; k <= n / 2; ++k) {
    miss += 2 * term;
    if (miss > 1 - confidence) return std::max<std::size_t>(k - 1, 1);
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
  }
  return std::max<std::size_t>(n / 2, 1);
}

}  // namespace

Verdict Ratio::verdict() const {
  if (low >= 1 / level_within && high <= level_within) return Verdict::level;
  if (low <= 1 && high >= 1) return Verdict::undecided;
  const bool agree = fastest >= low / apart && fastest <= high * apart;
  return agree && high <= widest * low ? Verdict::differs : Verdict::disturbed;
}

std::string Ratio::text() const {
  const std::string interval = fmt::format(" ({:.2f} to {:.2f})", low, high);
  switch (verdict()) {
    case Verdict::level:
      return "is level" + interval;
    case Verdict::undecided:
      return "cannot be told apart in the noise" + interval;
    case Verdict::disturbed:
      return fmt::format("was disturbed ({:.2f} to {:.2f}; fastest rounds {:.2f})", low, high, fastest);
    case Verdict::differs:
      break;
  }
  return fmt::format("takes {} times as long", benchmark::format_significant(median, 3)) + interval;
}

Ratio ratio(const Time& time, const Time& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(time.rounds.size(), other.rounds.size()); ++i)
    ratios.push_back(time.rounds[i] / other.rounds[i]);
  check<ValueError>(!ratios.empty(), "ratio: both times must have rounds, got {} and {}", time.rounds.size(),
                    other.rounds.size());
  std::sort(ratios.begin(), ratios.end());
  const std::size_t k = rank_of_bound(ratios.size());
  const auto least = [](const std::vector<double>& rounds) {
    return *std::min_element(rounds.begin(), rounds.end());
  };
  return {benchmark::quantile(ratios, 0.5), ratios[k - 1], ratios[ratios.size() - k],
          least(time.rounds) / least(other.rounds)};
}

Time time_of(const std::vector<double>& runs) {
  benchmark::Measurement measured;
  measured.times = measured.wall_times = runs;
  Time time(measured);
  time.first_call = runs.front();
  return time;
}

Time scaled(Time time, double factor) {
  for (double Time::*member : {&Time::median, &Time::lower_quartile, &Time::upper_quartile, &Time::mean,
                               &Time::wall_median, &Time::first_call})
    time.*member *= factor;
  for (double& round : time.rounds) round *= factor;
  return time;
}

Time added(const Time& one, const Time& other) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < std::min(one.rounds.size(), other.rounds.size()); ++i)
    sums.push_back(one.rounds[i] + other.rounds[i]);
  Time sum = time_of(sums);
  sum.wall_median = one.wall_median + other.wall_median;
  sum.first_call = one.first_call + other.first_call;
  sum.threads = one.threads;
  sum.cold_cache = one.cold_cache;
  return sum;
}

}  // namespace pleat::bench::ask
