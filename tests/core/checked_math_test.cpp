#include "pleat/core/base/checked_math.h"

#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {
constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();
}  // namespace

TEST_CASE("sizes are added, subtracted, multiplied and negated, or refused", "[core][limits]") {
  CHECK(checked_add(most - 1, 1, "op") == most);
  CHECK(checked_subtract(least + 1, 1, "op") == least);
  CHECK(checked_multiply(-(int64_t{1} << 62), 2, "op") == least);
  CHECK(checked_negate(most, "op") == least + 1);
  CHECK_THROWS_WITH(checked_add(most, 1, "pad"), "pad: 9223372036854775807 + 1 does not fit 64 bits");
  CHECK_THROWS_WITH(checked_subtract(least, 1, "pad"), "pad: -9223372036854775808 - 1 does not fit 64 bits");
  CHECK_THROWS_AS(checked_multiply(int64_t{1} << 62, 2, "op"), ShapeError);
  CHECK_THROWS_AS(checked_multiply(least, -1, "op"), ShapeError);
  CHECK_THROWS_AS(checked_negate(least, "op"), ShapeError);
}

TEST_CASE("ceil_div rounds up wherever its arguments lie", "[core][limits]") {
  CHECK(ceil_div(7, 3) == 3);
  CHECK(ceil_div(6, 3) == 2);
  CHECK(ceil_div(0, 3) == 0);
  CHECK(ceil_div(-7, 3) == -2);
  CHECK(ceil_div(most, 2) == int64_t{1} << 62);
  CHECK(ceil_div(most, most) == 1);
  CHECK(ceil_div(1, most) == 1);
  CHECK(ceil_div(least, 1) == least);
  CHECK(ceil_div(least, most) == -1);
  CHECK(round_up(65, 64) == 128);
  CHECK(round_up(64, 64) == 64);
}
