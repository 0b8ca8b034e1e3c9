#pragma once

// Catch2 2.13 and 3 keep their headers in different places; tests include this one.
#if __has_include(<catch2/catch_all.hpp>)
#include <string>
#include <utility>

#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch::Matchers {
// Of a text, as in version 2; version 3 also has a matcher of this name for containers.
inline auto Contains(std::string text) { return ContainsSubstring(std::move(text)); }
inline auto Contains(const char* text) { return ContainsSubstring(text); }
}  // namespace Catch::Matchers
#else
#include <catch2/catch.hpp>
#endif
