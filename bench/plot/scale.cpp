#include "pleat/bench/plot/scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace pleat::bench::plot {
namespace {

constexpr double smallest = 1e-290, largest = 1e290;

std::string superscript(int number) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) result += digits[c - '0'];
  return result;
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string with_commas(std::string text) {
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t at = std::min(text.find('.'), text.size()); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

/// A step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks.
double round_step(double range, int wanted) {
  const double rough = std::max(range / wanted, smallest);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  if (value == 0) return "0";
  const double size = std::abs(value);
  int power = static_cast<int>(std::floor(std::log10(size)));
  if (power < -4 || power >= 6) {
    std::string digits = without_trailing_zeros(
        fmt::format("{:.2f}", value / std::pow(10, power / 2) / std::pow(10, power - power / 2)));
    if (digits == "10" || digits == "-10") digits.pop_back(), ++power;
    return (digits == "1" ? "" : digits == "-1" ? "-" : digits + "×") + "10" + superscript(power);
  }
  return with_commas(without_trailing_zeros(fmt::format("{:.{}f}", value, std::max(0, 2 - power))));
}

Scale Scale::linear_from_zero(double high) { return linear(0, high > 0 ? high : 1); }

Scale Scale::linear(double low, double high) {
  low = std::clamp(low, -largest, largest);
  high = std::clamp(high, -largest, largest);
  if (low > high) std::swap(low, high);
  if (high - low < 1e-9 * std::max(std::abs(low), std::abs(high)) || high - low < smallest) {
    const double margin = std::max(std::abs(low) / 2, low == 0 ? 0.5 : smallest);
    low -= margin, high += margin;
  }
  Scale result;
  const double step = round_step(high - low, 6);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double tick = first; tick <= last + 0.5; ++tick) result.ticks_.push_back(tick * step);
  result.low_ = result.ticks_.front();
  result.high_ = result.ticks_.back();
  return result;
}

Scale Scale::logarithmic(double low, double high) {
  low = std::clamp(low, smallest, largest);
  high = std::clamp(high, smallest, largest);
  if (low > high) std::swap(low, high);
  if (high < 2 * low) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    low = middle / 1.5, high = middle * 1.5;
  }
  Scale result;
  result.log_ = true;
  const double decades = std::log10(high) - std::log10(low);
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  std::vector<double> factors = {1};
  if (decades <= 1.2)
    factors = {1, 1.5, 2, 3, 4, 5, 7};
  else if (decades <= 3)
    factors = {1, 2, 5};
  const int every = std::max(1, (last - first + 7) / 8);
  // The axis ends at the round values that just hold what it must show.
  std::vector<double> candidates;
  for (int power = first - every; power <= last + every; power += every)
    for (const double factor : factors) candidates.push_back(factor * std::pow(10, power));
  const auto above = std::upper_bound(candidates.begin(), candidates.end(), low * (1 + 1e-9));
  const auto end = std::lower_bound(candidates.begin(), candidates.end(), high * (1 - 1e-9));
  result.ticks_.assign(above - 1, end + 1);
  result.low_ = result.ticks_.front();
  result.high_ = result.ticks_.back();
  return result;
}

void Scale::crop(double low, double high) {
  constexpr double margin = 0.04;
  if (log_) {
    const double beyond = std::pow(high / low, margin);
    low_ = std::max(low_, low / beyond), high_ = std::min(high_, high * beyond);
  } else {
    const double beyond = (high - low) * margin;
    low_ = std::max(low_, low - beyond), high_ = std::min(high_, high + beyond);
  }
  std::erase_if(ticks_, [&](double tick) { return tick < low_ || tick > high_; });
}

double Scale::operator()(double value) const {
  value = std::clamp(value, low_, high_);
  const double share = log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
                            : (value - low_) / (high_ - low_);
  return start_ + share * (end_ - start_);
}

}  // namespace pleat::bench::plot
