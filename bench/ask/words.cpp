#include "pleat/bench/ask/words.h"

#include <cmath>

#include <fmt/format.h>

namespace pleat::bench::ask {
namespace {

/// Medians this close are level whatever their quartiles say.
constexpr double close = 0.05;

}  // namespace

Time time_of(const std::vector<double>& runs) {
  Time time;
  time.median = time.wall_median = benchmark::quantile(runs, 0.5);
  time.lower_quartile = benchmark::quantile(runs, 0.25);
  time.upper_quartile = benchmark::quantile(runs, 0.75);
  for (const double run : runs) time.mean += run / static_cast<double>(runs.size());
  time.blocks = time.runs = static_cast<int64_t>(runs.size());
  return time;
}

Time joined(const Time& a, const Time& b) {
  Time both = a;
  both.median += b.median;
  both.lower_quartile += b.lower_quartile;
  both.upper_quartile += b.upper_quartile;
  both.mean += b.mean;
  both.wall_median += b.wall_median;
  both.first_call += b.first_call;
  return both;
}

std::string text(const Time& time) {
  return benchmark::format_time(time.median, 3) + (time.has_wide_spread() ? " ~" : "");
}

Ratio ratio(const Time& a, const Time& b) {
  return {a.median / b.median, a.lower_quartile / b.upper_quartile, a.upper_quartile / b.lower_quartile};
}

Relation relate(const Time& a, const Time& b) {
  const Ratio r = ratio(a, b);
  if (std::abs(std::log(r.value)) <= std::log1p(close)) return Relation::level;
  if (r.low > 1) return Relation::longer;
  if (r.high < 1) return Relation::shorter;
  return Relation::unclear;
}

std::string factor_text(double factor) {
  const int digits = factor < 1.95 ? 2 : factor < 9.95 ? 1 : 0;
  return fmt::format("{:.{}f}", factor, digits);
}

std::string comparison(const std::string& a, const Time& time_a, const std::string& b, const Time& time_b) {
  if (time_a.median < time_b.median) return comparison(b, time_b, a, time_a);
  const Ratio r = ratio(time_a, time_b);
  const std::string one = benchmark::format_time(time_a.median, 3);
  const std::string other = benchmark::format_time(time_b.median, 3);
  const Relation relation = relate(time_a, time_b);
  if (relation == Relation::level || relation == Relation::unclear)
    return fmt::format("{} and {} {} ({} and {}, ratio {:.2f}, quartiles {:.2f} to {:.2f})", a, b,
                       relation == Relation::level ? "are level" : "cannot be told apart in the noise", one,
                       other, r.value, r.low, r.high);
  return fmt::format("{} takes {} times as long as {} ({} against {}, quartiles {:.2f} to {:.2f})", a,
                     factor_text(r.value), b, one, other, r.low, r.high);
}

std::string percent(double part, double whole) {
  const double share = 100 * part / whole;
  return share < 1 ? "under 1 %" : fmt::format("{:.0f} %", share);
}

std::string error_text(double error) { return error == 0 ? "0" : fmt::format("{:.1e}", error); }

std::string list_text(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

}  // namespace pleat::bench::ask
