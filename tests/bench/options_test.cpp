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

TEST_CASE("types, formats and precisions are read by their names only", "[bench]") {
  for (const DType dtype : {float32, float64, float16, bfloat16})
    CHECK(parse_dtype(std::string(name(dtype))) == dtype);
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
    CHECK(parse_format(name(format)) == format);
  for (const Precision precision : {Precision::highest, Precision::high, Precision::medium})
    CHECK(parse_precision(text_of_precision(precision)) == precision);
  CHECK_THROWS_WITH(parse_dtype("int8"), Catch::Matchers::StartsWith("--dtype: must be float32"));
  CHECK_THROWS_AS(parse_format("nhwc"), UsageError);
  CHECK_THROWS_AS(parse_precision(""), UsageError);
}
