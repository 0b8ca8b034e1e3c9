#include "options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <type_traits>

namespace {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }

/// `kind` and `range` say what is wanted; `fits` decides. A number that fits is put as CLI11 cannot misread
/// it.
template <class Number, class Fits>
CLI::Validator number(const std::string& kind, const std::string& range, Fits fits) {
  return {[kind, range, fits](std::string& text) {
            const std::optional<Number> value = parse_number<Number>(text);
            if (!value || !fits(*value)) return "must be " + kind + ' ' + range + ", got \"" + text + '"';
            if constexpr (std::is_integral_v<Number>) text = text_of(*value);
            return std::string();
          },
          range};
}

template <class Number>
CLI::Validator in_range(const std::string& kind, Number least, Number most) {
  const std::string range = most == std::numeric_limits<Number>::max()
                                ? "of at least " + text_of(least)
                                : "from " + text_of(least) + " to " + text_of(most);
  return number<Number>(kind, range, [=](Number value) { return value >= least && value <= most; });
}

}  // namespace

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return {};
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(value)) return {};
  return value;
}

template std::optional<int64_t> parse_number(std::string_view);
template std::optional<uint64_t> parse_number(std::string_view);
template std::optional<double> parse_number(std::string_view);

CLI::Validator whole_number(int64_t least, int64_t most) {
  return in_range<int64_t>("a whole number", least, most);
}

CLI::Validator seed_number() {
  return number<uint64_t>("a whole number", "from 0 to " + text_of(std::numeric_limits<uint64_t>::max()),
                          [](uint64_t) { return true; });
}

CLI::Validator real_number(double least, double most) { return in_range<double>("a number", least, most); }

CLI::Validator positive_number(double most) {
  const std::string range = most == std::numeric_limits<double>::max() ? "" : " and up to " + text_of(most);
  return number<double>("a number", "above 0" + range,
                        [=](double value) { return value > 0 && value <= most; });
}

CLI::Validator fraction_below_one() {
  return number<double>("a number", "from 0 to below 1",
                        [](double value) { return value >= 0 && value < 1; });
}

CLI::Validator not_empty() {
  return {[](std::string& text) { return text.empty() ? "must not be empty" : std::string(); }, ""};
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_other(a, error)) return false;
  return fs::weakly_canonical(fs::absolute(a), error) == fs::weakly_canonical(fs::absolute(b), error);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& description, const std::vector<std::string>& known) {
  std::string usual, choice;
  for (const std::string& value : values) usual += (usual.empty() ? "" : ",") + value;
  for (const std::string& value : known) choice += (choice.empty() ? "" : ", ") + value;
  const auto take = [&values, name, known, choice](const std::vector<std::string>& given) {
    std::vector<std::string> taken;
    for (const std::string& text : given)
      for (const std::string& part : split(text)) {
        const bool fits =
            known.empty() ? !part.empty() : std::find(known.begin(), known.end(), part) != known.end();
        if (!fits)
          throw CLI::ValidationError(name, "must be " + (known.empty() ? "names" : "some of " + choice) +
                                               ", separated by commas, got \"" + text + '"');
        if (std::find(taken.begin(), taken.end(), part) != taken.end())
          throw CLI::ValidationError(name, '"' + part + "\" is there twice");
        taken.push_back(part);
      }
    values = taken;
  };
  return app.add_option_function<std::vector<std::string>>(name, take, description)
      ->allow_extra_args(false)
      ->type_name(known.empty() ? "NAMES" : "some of " + choice)
      ->default_str(usual);
}
