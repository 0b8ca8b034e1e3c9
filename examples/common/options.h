#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

/// Strict values of options: the whole text must be a number in the range. CLI11 by itself reads
/// 99999999999999999999 as 2^64 - 1 and 010 as 8, and accepts NaN in any range.

/// A bound of epochs, low enough to count all steps.
inline constexpr int64_t most_epochs = 1'000'000;

/// The number that a text consists of; none for other texts, also for NaN and infinity.
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
/// A name of a file or folder, which must not be "".
CLI::Validator not_empty();

/// Whether two names are the same regular file; false for a device, which can take several outputs.
bool same_file(const std::string& a, const std::string& b);

/// The parts of a text between its commas, empty ones too.
std::vector<std::string> split(const std::string& text);

/// An option whose values are separated by commas, or given one after the other: some of `known`, where there
/// are any, none of them twice.
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& description, const std::vector<std::string>& known = {});
