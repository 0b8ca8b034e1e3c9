#include <algorithm>

#include "pleat/bench/ask/answer.h"
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
  CHECK(median_text(made_up(4.6)) == "4.60 ms");
  CHECK(capitalized("batch 2") == "Batch 2");
  CHECK(capitalized("2-D") == "2-D");
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
  const bench::Time both = sum(made_up(1, 0.1), made_up(2, 0.1));
  CHECK(both.median == Approx(3e-3));
  CHECK(both.lower_quartile == Approx(2.7e-3));
  CHECK(both.upper_quartile == Approx(3.3e-3));
}

TEST_CASE("An answer's tables are aligned and its sentences broken at spaces", "[ask]") {
  CHECK(table("title", {{"p", "a", "1 ms"}, {"p", "long", "10 ms"}},
              {{"time", [](const Cell& row) { return row.pass; }}}) ==
        "title\n         time\n  a      1 ms\n  long  10 ms\n");
  std::string sentence;
  for (int i = 0; i < 30; ++i) sentence += "word" + std::to_string(i) + ' ';
  const std::string lines = indented(sentence, "- ");
  CHECK(lines.substr(0, 7) == "- word0");
  CHECK(lines.find("\n  word") != std::string::npos);
  std::size_t longest = 0, start = 0;
  for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', start)) {
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  CHECK(longest <= 100);
  CHECK(longest > 90);

  const std::string all = text(Answer{.setup = {"what"}, .tables = {"t\n"}, .conclusion = {"so it is."}});
  CHECK(all.find("what\n\nt\n") == 0);
  CHECK(all.find("Conclusion\n- so it is.\n") != std::string::npos);
}

TEST_CASE("Times are found by problem, way and pass, and make tables and pictures", "[ask]") {
  const Times times{{"batch 2", "direct", "forward", made_up(1)},
                    {"batch 2", "by hand", "forward", made_up(30, 0.2)},
                    {"batch 4", "direct", "forward", made_up(2)}};
  CHECK(times.problems() == std::vector<std::string>{"batch 2", "batch 4"});
  CHECK(times.ways("batch 2") == std::vector<std::string>{"direct", "by hand"});
  CHECK(times.ways("batch 4") == std::vector<std::string>{"direct"});
  CHECK(times.at("batch 4", "direct", "forward").median == Approx(2e-3));
  CHECK(times.find("batch 4", "by hand", "forward") == nullptr);
  CHECK(times.find("batch 4", "direct", "forward")->time.median == Approx(2e-3));
  CHECK(times.fastest("batch 2", {"forward"}) == "direct");
  CHECK(times.fastest("batch 2", {"forward"}, "direct") == "by hand");
  CHECK(times.total("batch 4", "direct", {"forward", "forward"}).median == Approx(4e-3));
  CHECK_THROWS_WITH(times.at("batch 4", "by hand", "forward"),
                    "ask: nothing was measured under the name \"batch 4, by hand, forward\"");
  CHECK(Cell{"a", "b", ""}.name() == "a, b");
  CHECK(table("t", times.rows({"batch 2"}),
              {times.column("forward"),
               {"longer", [](const Cell& row) { return row.way + "!"; }},
               times.column("twice", {"forward", "forward"}),
               times.ratio_column("forward", "forward")}) ==
        "t\n"
        "             forward    longer      twice  forward / forward\n"
        "  direct     1.00 ms   direct!    2.00 ms               1.00\n"
        "  by hand  30.0 ms ~  by hand!  60.0 ms ~               1.00\n");
  const std::string picture = bars("title", Device(), times, [](const Cell& cell) -> Place {
    if (cell.problem != "batch 2") return {};
    return {{cell.pass, cell.way}};
  });
  CHECK(picture.find("by hand, forward: 30") != std::string::npos);
  CHECK(picture.find("direct, forward: 1") != std::string::npos);
  CHECK(picture.find("direct, forward: 2") == std::string::npos);
}

TEST_CASE("Works are timed together, and what tunes one is no part of its time", "[ask]") {
  Times times;
  int runs = 0, tuned = 0;
  times.measure({.timer = {.min_run_time = 1e-4, .min_blocks = 3}},
                {{"p", "a", "forward", [&] { ++runs; }, [&] { ++tuned; }}, {"p", "b", "", [&] { ++runs; }}});
  CHECK(tuned == 1);
  CHECK(runs > 2);
  CHECK(times.cells().size() == 2);
  CHECK(times.at("p", "a", "forward").tuning > 0);
  CHECK(times.at("p", "b", "").runs > 0);
}
