#include "pleat/bench/options.h"

#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

TEST_CASE("sizes are read, and nonsense is named", "[bench]") {
  CHECK(parse_sizes("--size", "128,64,32") == Shape{128, 64, 32});
  CHECK(parse_sizes("--size", "7") == Shape{7});
  CHECK(parse_sizes("--size", "2x3") == Shape{2, 3});
  for (const char* text :
       {"", ",", "3,", ",3", "0", "3,0", "-1", "3,-1", "a", "3 4", "1e3", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_sizes("--size", text), UsageError);
    CHECK_THROWS_WITH(parse_sizes("--size", text),
                      Catch::Matchers::Contains("--size: must be sizes") && Catch::Matchers::Contains(text));
  }
}

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
