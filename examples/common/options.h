#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

/// Values of options, read strictly: the whole text must be a number, and it must be in its range. What
/// CLI11 reads by itself takes 99999999999999999999 for 2^64 - 1, 010 for 8, and NaN for a number in any
/// range.

/// More than anybody waits for; so many times the steps of an epoch can still be counted.
inline constexpr int64_t most_epochs = 1'000'000;

/// The number that a text is, in digits with nothing before or after it; none for others, NaN and infinity
/// among them.
template <class Number>
std::optional<Number> parse_number(std::string_view text);
extern template std::optional<int64_t> parse_number(std::string_view);
extern template std::optional<uint64_t> parse_number(std::string_view);
extern template std::optional<double> parse_number(std::string_view);

// For Option::transform.
/// A whole number.
CLI::Validator whole_number(int64_t least, int64_t most = std::numeric_limits<int64_t>::max());
/// From 0 to 2^64 - 1.
CLI::Validator seed_number();
/// A number from `least` to `most`, both included.
CLI::Validator real_number(double least, double most = std::numeric_limits<double>::max());
/// Above 0.
CLI::Validator positive_number(double most = std::numeric_limits<double>::max());
/// From 0 to below 1.
CLI::Validator fraction_below_one();

// For Option::check.
/// A name of a file or folder: not "", which would mean something else than it says.
CLI::Validator not_empty();

/// Whether two names lead to one file; not so for a device, which takes one output after the other.
bool same_file(const std::string& a, const std::string& b);

/// The parts of a text between its commas, empty ones too.
std::vector<std::string> split(const std::string& text);

/// An option whose values are separated by commas, or given one after the other: some of `known`, where there
/// are any, none of them twice.
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& description, const std::vector<std::string>& known = {});
