#include "pleat/profile/measurement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>

#include <fmt/format.h>

#include "pleat/core/base/format.h"

namespace pleat::benchmark {

double quantile(std::vector<double> values, double q) {
  check<ValueError>(!values.empty(), "quantile: there must be a value, got none");
  check<ValueError>(q >= 0 && q <= 1, "quantile: q must be from 0 to 1, got {}", q);
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

double Measurement::quantile(double q) const { return benchmark::quantile(times, q); }
double Measurement::wall_median() const { return benchmark::quantile(wall_times, 0.5); }

double Measurement::mean() const {
  check<ValueError>(!times.empty(), "measurement.mean: there must be a time, got none");
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

double Measurement::spread() const {
  const double middle = median();
  return middle > 0 ? (upper_quartile() - lower_quartile()) / middle : 0;
}

int Measurement::significant_digits() const {
  constexpr double clock_floor = 25e-9;
  const double low = lower_quartile();
  const double high = upper_quartile();
  std::vector<double> inner;
  for (const double time : times)
    if (time >= low && time <= high) inner.push_back(time);
  double deviation = 0;
  if (inner.size() > 1) {
    const auto n = static_cast<double>(inner.size());
    const double middle = std::accumulate(inner.begin(), inner.end(), 0.0) / n;
    for (const double time : inner) deviation += (time - middle) * (time - middle);
    deviation = std::sqrt(deviation / (n - 1)) / std::sqrt(n);
  }
  // A block's clock error is shared by its runs.
  const double interval = std::max(1.645 * deviation, clock_floor / static_cast<double>(block_size));
  const double middle = median();
  if (middle <= 0) return 1;
  return std::clamp(static_cast<int>(std::floor(-std::log10(interval / middle))), 1, 4);
}

std::string Measurement::to_string() const {
  const auto count = [](int64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const int digits = std::max(3, significant_digits());
  std::string text;
  for (const std::string* part : {&label, &sub_label, &description})
    if (!part->empty()) text += (text.empty() ? "" : ", ") + *part;
  if (!text.empty()) text += '\n';
  const double middle = median();
  const TimeUnit unit = time_unit(middle);
  text += fmt::format("  median {}, quartiles {} to {} {}\n", format_time(middle, digits),
                      format_significant(lower_quartile() / unit.seconds, digits),
                      format_significant(upper_quartile() / unit.seconds, digits), unit.name);
  text += fmt::format("  {} of {}, {} on {}{}\n", count(static_cast<int64_t>(times.size()), "block"),
                      count(block_size, "run"), count(threads, "thread"), name(device),
                      cold_cache ? ", caches emptied before each run" : "");
  if (device.is_cuda()) text += fmt::format("  wall time {}\n", format_time(wall_median(), digits));
  text += fmt::format("  first call {}", format_time(first_call, 3));
  if (tuning > 0) text += fmt::format(", tuning {}", format_time(tuning, 3));
  text += '\n';
  if (has_wide_spread())
    text += fmt::format("  warning: the quartiles are {:.0f} % of the median apart: {}\n", 100 * spread(),
                        spread() > 0.25 ? "something else used the machine, do not trust the figure"
                                        : "something else may have used the machine");
  return text;
}

std::ostream& operator<<(std::ostream& out, const Measurement& measurement) {
  return out << measurement.to_string();
}

TimeUnit time_unit(double seconds) {
  // A little below the unit still reads well in it: 0.95 ms.
  if (seconds < 0.9e-6) return {"ns", 1e-9};
  if (seconds < 0.9e-3) return {"µs", 1e-6};
  if (seconds < 0.9) return {"ms", 1e-3};
  return {"s", 1};
}

std::string format_significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.{}f}", value, std::max(0, digits - 1));
  // Rounding first: 9.996 with 3 digits is 10.0.
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double step = std::pow(10.0, power - digits + 1);
  const double rounded = std::round(value / step) * step;
  const int rounded_power = static_cast<int>(std::floor(std::log10(std::abs(rounded)) + 1e-12));
  return fmt::format("{:.{}f}", rounded, std::max(0, digits - 1 - rounded_power));
}

std::string format_time(double seconds, int digits) {
  const TimeUnit unit = time_unit(std::abs(seconds));
  return format_significant(seconds / unit.seconds, digits) + ' ' + unit.name;
}

}  // namespace pleat::benchmark
