#include "pleat/bench/options.h"

#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

TEST_CASE("a count is a whole number in its range", "[bench]") {
  CHECK(parse_count("--batch", "1") == 1);
  CHECK(parse_count("--batch", "16777216") == 16777216);
  for (const char* text :
       {"", "0", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "16777217", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_count("--batch", text), UsageError);
  }
}

TEST_CASE("types and formats have the names that Pleat gives them", "[bench]") {
  CHECK(dtypes.size() == 4);
  for (const auto& [text, dtype] : dtypes) CHECK(name(dtype) == text);
  CHECK(formats.size() == 2);
  for (const auto& [text, format] : formats) CHECK(name(format) == text);
}
