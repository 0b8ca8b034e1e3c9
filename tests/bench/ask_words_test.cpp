#include <algorithm>
#include <cmath>

#include "pleat/bench/ask/answer.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/ask/words.h"
#include "pleat/core/base/error.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::made_up;

TEST_CASE("A time is longer than another only when their quartiles and 5 % are between them", "[ask]") {
  CHECK(relate(made_up(2), made_up(1)) == Relation::longer);
  CHECK(relate(made_up(1), made_up(2)) == Relation::shorter);
  CHECK(relate(made_up(1.04, 0), made_up(1, 0)) == Relation::level);  // for sure, but not by much
  CHECK(relate(made_up(1, 0), made_up(1.04, 0)) == Relation::level);
  CHECK(relate(made_up(1.3, 0.2), made_up(1, 0.2)) == Relation::unclear);  // by much, but not for sure
  CHECK(relate(made_up(1, 0.2), made_up(1.3, 0.2)) == Relation::unclear);
  CHECK(relate(made_up(1.3, 0.02), made_up(1, 0.02)) == Relation::longer);
  const Ratio r = ratio(made_up(4, 0.1), made_up(2, 0.2));
  CHECK(r.value == Approx(2));
  CHECK(r.low == Approx(3.6 / 2.4));
  CHECK(r.high == Approx(4.4 / 1.6));
}

TEST_CASE("Comparisons name the longer time first and say what the noise leaves open", "[ask]") {
  CHECK(comparison("this", made_up(2), "that", made_up(4.6)) ==
        "that takes 2.3 times as long as this (4.60 ms against 2.00 ms, quartiles 2.21 to 2.39)");
  CHECK(comparison("this", made_up(1), "that", made_up(1.02)) ==
        "that and this are level (1.02 ms and 1.00 ms, ratio 1.02, quartiles 0.98 to 1.06)");
  CHECK(comparison("this", made_up(1, 0.2), "that", made_up(1.3, 0.2)) ==
        "that and this cannot be told apart in the noise (1.30 ms and 1.00 ms, ratio 1.30, quartiles 0.87 to "
        "1.95)");
  CHECK(factor_text(1.234) == "1.23");
  CHECK(factor_text(1.949) == "1.95");
  CHECK(factor_text(1.96) == "2.0");
  CHECK(factor_text(9.96) == "10");
  CHECK(factor_text(140.4) == "140");
  CHECK(percent(0.25, 1) == "25 %");
  CHECK(percent(0.001, 1) == "under 1 %");
  CHECK(error_text(0) == "0");
  CHECK(error_text(3.14e-7) == "3.1e-07");
  CHECK(list_text({"a"}) == "a");
  CHECK(list_text({"a", "b", "c"}) == "a, b and c");
}

TEST_CASE("Times of single runs become a median with quartiles; two times in a row add up", "[ask]") {
  const bench::Time time = time_of({4, 1, 2, 3, 5});
  CHECK(time.median == 3);
  CHECK(time.lower_quartile == 2);
  CHECK(time.upper_quartile == 4);
  CHECK(time.mean == Approx(3));
  CHECK(time.runs == 5);
  CHECK(text(time) == "3.00 s ~");
  CHECK(text(made_up(1.5)) == "1.50 ms");
  CHECK_THROWS_AS(time_of({}), ValueError);
  const bench::Time both = joined(made_up(1, 0.1), made_up(2, 0.1));
  CHECK(both.median == Approx(3e-3));
  CHECK(both.lower_quartile == Approx(2.7e-3));
  CHECK(both.upper_quartile == Approx(3.3e-3));
}

TEST_CASE("An answer's tables are aligned and its sentences broken at spaces", "[ask]") {
  CHECK(text(Table{"title", {"", "time"}, {{"a", "1 ms"}, {"long", "10 ms"}}}) ==
        "title\n         time\n  a      1 ms\n  long  10 ms\n");
  CHECK_THROWS_WITH(text(Table{"title", {"", "time"}, {{"a"}}}),
                    "ask: a row of \"title\" needs 2 cells, got 1");
  std::string sentence;
  for (int i = 0; i < 30; ++i) sentence += "word" + std::to_string(i) + ' ';
  const std::string lines = wrapped(sentence, "- ");
  CHECK(lines.substr(0, 7) == "- word0");
  CHECK(lines.find("\n  word") != std::string::npos);
  std::size_t longest = 0, start = 0;
  for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', start)) {
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  CHECK(longest <= 100);
  CHECK(longest > 90);

  const std::string all =
      text(Answer{.setup = {"what"}, .tables = {{"t", {"x"}, {{"1"}}}}, .conclusion = {"so it is."}});
  CHECK(all.find("what\n\nt\n") == 0);
  CHECK(all.find("Conclusion\n- so it is.\n") != std::string::npos);
}

TEST_CASE("Bars and lines of an answer find their group and series by name", "[ask]") {
  bench::plot::BarChart bars;
  add_bar(bars, "one", "a", made_up(1));
  add_bar(bars, "two", "b", made_up(2));
  add_bar(bars, "two", "a", made_up(3));
  CHECK(bars.groups == std::vector<std::string>{"one", "two"});
  REQUIRE(bars.series.size() == 2);
  CHECK(bars.series[0].name == "a");
  REQUIRE(bars.series[0].bars.size() == 2);
  CHECK(bars.series[0].bars[1].value == Approx(3));
  CHECK(bars.series[0].bars[1].low == Approx(2.94));
  CHECK(std::isnan(bars.series[1].bars[0].value));
  bench::plot::LineChart lines;
  add_point(lines, "a", 1, made_up(1));
  add_point(lines, "a", 2, made_up(4));
  REQUIRE(lines.series.size() == 1);
  CHECK(lines.series[0].points[1].y == Approx(4));
}
