#include "pleat/profile/compare.h"

#include <sstream>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::benchmark;

namespace {

Measurement measured(std::string label, std::string row, std::string column, std::vector<double> times) {
  Measurement m;
  m.label = std::move(label);
  m.sub_label = std::move(row);
  m.description = std::move(column);
  m.times = times;
  m.wall_times = std::move(times);
  m.threads = 2;
  return m;
}

}  // namespace

TEST_CASE("quantiles are interpolated between neighbours", "[profile]") {
  CHECK(quantile({3}, 0.5) == 3);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({5, 1, 3, 2, 4}, 0.25) == 2);
  CHECK(quantile({1, 2}, 1) == 2);
  CHECK_THROWS_WITH(quantile({}, 0.5), "quantile: there must be a value, got none");
  CHECK_THROWS_WITH(quantile({1}, 1.5), "quantile: q must be from 0 to 1, got 1.5");
}

TEST_CASE("times are written in the unit that suits, with the digits that count", "[profile]") {
  CHECK(format_time(1.23456e-8, 3) == "12.3 ns");
  CHECK(format_time(2e-6) == "2.000 µs");
  CHECK(format_time(0.0123456) == "12.35 ms");
  CHECK(format_time(0.95e-3, 2) == "0.95 ms");
  CHECK(format_time(123.4, 2) == "120 s");
  CHECK(format_significant(9.996, 3) == "10.0");
  CHECK(format_significant(0.0999, 1) == "0.1");
  CHECK(format_significant(1234, 2) == "1200");
  CHECK(format_significant(0, 3) == "0.00");
}

TEST_CASE("a measurement knows its spread and how many digits to believe", "[profile]") {
  const Measurement quiet = measured("", "", "", {1.0, 1.0, 1.0, 1.0});
  CHECK(quiet.significant_digits() == 4);
  CHECK_FALSE(quiet.has_wide_spread());
  const Measurement loud = measured("", "", "", {1.0, 1.2, 1.4, 1.6, 1.8, 2.0});
  CHECK(loud.significant_digits() == 1);
  CHECK(loud.has_wide_spread());
  CHECK(loud.spread() == Approx((1.75 - 1.25) / 1.5));
  CHECK(loud.mean() == Approx(1.5));
  // 100 ns read with an error of 25 ns: a single digit, however often it comes out alike.
  CHECK(measured("", "", "", {1e-7, 1e-7, 1e-7}).significant_digits() == 1);
  CHECK_THROWS_AS(Measurement{}.mean(), ValueError);
}

TEST_CASE("a measurement prints all that it takes to trust it", "[profile]") {
  Measurement m = measured("conv2d", "n1 c3", "direct", {0.010, 0.0101, 0.0102, 0.0103, 0.0104});
  m.block_size = 3;
  m.first_call = 0.5;
  CHECK(m.to_string() ==
        "conv2d, n1 c3, direct\n"
        "  median 10.2 ms, quartiles 10.1 to 10.3 ms\n"
        "  5 blocks of 3 runs, 2 threads on cpu\n"
        "  first call 500 ms\n");
  m.tuning = 2;
  m.cold_cache = true;
  m.threads = 1;
  m.times = {0.01, 0.02, 0.03, 0.04};
  CHECK(m.to_string() ==
        "conv2d, n1 c3, direct\n"
        "  median 25.0 ms, quartiles 17.5 to 32.5 ms\n"
        "  4 blocks of 3 runs, 1 thread on cpu, caches emptied before each run\n"
        "  first call 500 ms, tuning 2.00 s\n"
        "  warning: the quartiles are 60 % of the median apart: something else used the machine, do not "
        "trust the "
        "figure\n");
}

TEST_CASE("tables align, mark the best of each row and say what is noisy", "[profile]") {
  Compare compare;
  compare.add(measured("conv2d", "n1", "direct", {0.010, 0.010, 0.010}));
  compare.add(measured("conv2d", "n128", "unfold", {1.5, 1.5, 1.5}));
  compare.add(measured("conv2d", "n128", "direct", {1.0, 1.25, 1.5, 1.75}));
  compare.add(measured("conv2d", "n1", "unfold", {0.0125, 0.0125}));
  Measurement serial = measured("conv2d", "n1", "direct", {0.1});
  serial.threads = 1;
  compare.add(serial);
  CHECK(
      compare.table({.color = Color::never}) ==
      "conv2d\n"
      "       | direct     | unfold\n"
      "cpu, 2 threads\n"
      "  n1   |   10.00 *  |   12.50\n"
      "  n128 | 1400    *~ | 1500\n"
      "cpu, 1 thread\n"
      "  n1   |  100.0     |    -\n"
      "Medians in ms; * best of its row; ~ quartiles more than 10 % of the median apart: other work may have "
      "disturbed it\n");
}

TEST_CASE("colours mark the best and what takes twice as long, only when asked for", "[profile]") {
  const Compare compare({measured("", "row", "a", {1, 1}), measured("", "row", "b", {2, 2})});
  const std::string coloured = compare.table({.color = Color::always});
  CHECK(coloured.find("\x1b[1;32m1.000 * ") != std::string::npos);
  CHECK(coloured.find("\x1b[31m2.000") != std::string::npos);
  CHECK(compare.table({.color = Color::never}).find('\x1b') == std::string::npos);
  std::ostringstream out;
  out << compare;
  CHECK(out.str() == compare.table({.color = Color::never}));
}

TEST_CASE("a second measurement of a cell adds to the first", "[profile]") {
  Compare compare({measured("t", "r", "c", {1}), measured("t", "r", "c", {3})});
  REQUIRE(compare.measurements().size() == 1);
  CHECK(compare.measurements()[0].median() == 2);
  CHECK_THROWS_WITH(compare.add(Measurement{}), "compare: a measurement must have times, got none");
}
