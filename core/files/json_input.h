// Private header: not installed.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "pleat/core/base/error.h"

/// JSON of files that others wrote. Private files that include nlohmann-json use this.

namespace pleat {

/// The deepest nesting that is read. Code that recurses over deeper nesting could run out of stack.
inline constexpr int most_json_depth = 128;
/// The most members of an object: an object that keeps their order finds each by looking at all of them.
inline constexpr int most_json_members = 1000;
/// The most bytes of memory that a byte of JSON becomes as a nlohmann::json.
inline constexpr int64_t json_expansion = 64;

/// Throws FileError "<where>: ..." for text that is nested deeper, or has larger objects, than that.
void check_json_size(const std::string& text, const std::string& where);
/// A parser's message, without the long token that it may quote.
std::string json_cause(const std::exception& error);

/// Json is nlohmann::json or nlohmann::ordered_json. Throws FileError "<where>: ...".
template <class Json>
Json parse_json(const std::string& text, const std::string& where) {
  check_json_size(text, where);
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    throw FileError(where + ": is not JSON: " + json_cause(error));
  }
}

}  // namespace pleat
