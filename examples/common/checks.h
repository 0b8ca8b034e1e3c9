#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

/// A check of an option's value: a number of at least `least`. CLI11's own PositiveNumber answers with the
/// range of double, 300 digits long.
inline CLI::Validator at_least(int64_t least) {
  const std::string wanted = "at least " + std::to_string(least);
  return {[wanted, least](std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value >= static_cast<double>(least);
            return fits ? std::string() : "must be " + wanted + ", got " + text;
          },
          wanted};
}
