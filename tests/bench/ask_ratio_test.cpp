#include "pleat/bench/ask/ratio.h"
#include "pleat/core/base/error.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::made_up;

namespace {

std::string beside(const bench::Time& time, const bench::Time& other) { return ratio(time, other).text(); }

}  // namespace

TEST_CASE("A ratio is that of rounds, which noise that both share leaves sharp", "[ask]") {
  // Both slow down by half in the course of nine rounds.
  CHECK(beside(made_up(1.3, 0.5), made_up(1, 0.5)) == "takes 1.30 times as long (1.30 to 1.30)");
  CHECK(beside(made_up(1, 0.5), made_up(4, 0.5)) == "takes 0.250 times as long (0.25 to 0.25)");
  // The same noise, of each alone.
  CHECK(beside(made_up(1.3, 0.5), made_up(1, 0.5, true)) ==
        "cannot be told apart in the noise (0.43 to 3.90)");
}

TEST_CASE("Two times are level, or one is longer, or too few rounds say neither", "[ask]") {
  CHECK(beside(made_up(280), made_up(2)) == "takes 140 times as long (140.00 to 140.00)");
  // For sure, but not by much.
  CHECK(beside(made_up(1.04, 0), made_up(1, 0)) == "is level (1.04 to 1.04)");
  CHECK(beside(made_up(1, 0), made_up(1.04, 0)) == "is level (0.96 to 0.96)");
  CHECK(beside(made_up(1.06, 0), made_up(1, 0)) == "takes 1.06 times as long (1.06 to 1.06)");
  // It could be more than 5 %, or nothing.
  CHECK(ratio(made_up(1.01, 0.03), made_up(1, 0.03, true)).verdict() == Verdict::undecided);
  // At most 5 %, whatever else.
  CHECK(ratio(made_up(1, 0.02), made_up(1, 0.02, true)).verdict() == Verdict::level);
}

TEST_CASE("Nothing follows from rounds that were disturbed", "[ask]") {
  // 1.3 times as long, but for other work in two of three rounds.
  const bench::Time busy = time_of({1.3, 5.2, 9, 13, 1.99, 1.5, 13.5, 6.5, 7.5}),
                    quiet = time_of(std::vector(9, 1.0));
  const Ratio one = ratio(busy, quiet);
  CHECK(one.verdict() == Verdict::disturbed);
  CHECK(one.text() == "was disturbed (1.30 to 13.50; fastest rounds 1.30)");
  CHECK(ratio(quiet, busy).verdict() == Verdict::disturbed);
  // All but the first few rounds alike, and still not what the way takes alone.
  std::vector<double> rounds(90, 5.0);
  rounds[7] = rounds[30] = 1.3;
  CHECK(ratio(time_of(rounds), time_of(std::vector(90, 1.0))).text() ==
        "was disturbed (5.00 to 5.00; fastest rounds 1.30)");
  // A few disturbed rounds of many do no harm.
  std::vector<double> few(90, 1.3);
  for (std::size_t i = 0; i < 30; ++i) few[3 * i] = 9;
  CHECK(ratio(time_of(few), time_of(std::vector(90, 1.0))).text() ==
        "takes 1.30 times as long (1.30 to 1.30)");
}

TEST_CASE("The interval of a ratio leaves out as many extremes as 99 % allow", "[ask]") {
  const auto interval = [](std::size_t rounds) {
    std::vector<double> times;
    for (std::size_t i = 0; i < rounds; ++i) times.push_back(static_cast<double>(i + 1));
    const Ratio one = ratio(time_of(times), time_of(std::vector<double>(rounds, 1.0)));
    CHECK(one.median == Approx(0.5 * static_cast<double>(rounds + 1)));
    CHECK(one.low + one.high == Approx(static_cast<double>(rounds + 1)));
    return one.low;
  };
  // The largest k with 2 P(B(n, 1/2) < k) <= 0.01: n 12: 2 (1 + 12) / 4096 = 0.006 for k = 2; n 18: 0.0075
  // for k = 4; n 90: 0.0078 for k = 33.
  for (const auto& [rounds, k] : std::vector<std::pair<std::size_t, double>>{
           {1, 1}, {2, 1}, {3, 1}, {7, 1}, {8, 1}, {9, 1}, {12, 2}, {18, 4}, {90, 33}})
    CHECK(interval(rounds) == k);
  // Of rounds that only one has, nothing is known.
  CHECK(ratio(time_of({2, 2, 2, 9}), time_of({1, 1, 1})).high == 2);
  CHECK_THROWS_AS(ratio(bench::Time(), time_of({1})), ValueError);
}

TEST_CASE("Times of single runs become a median with quartiles, may be scaled and added", "[ask]") {
  const bench::Time time = time_of({4, 1, 2, 3, 5});
  CHECK(time.median == 3);
  CHECK(time.lower_quartile == 2);
  CHECK(time.upper_quartile == 4);
  CHECK(time.mean == Approx(3));
  CHECK(time.first_call == 4);
  CHECK(time.runs == 5);
  CHECK_THROWS_AS(time_of({}), ValueError);
  const bench::Time twice = scaled(time, 2);
  CHECK(twice.median == 6);
  CHECK(twice.lower_quartile == 4);
  CHECK(twice.upper_quartile == 8);
  CHECK(twice.runs == 5);
  CHECK(ratio(twice, time).text() == "takes 2.00 times as long (2.00 to 2.00)");
  // Round by round: what one makes up for the other is no noise of the sum.
  const bench::Time sum = added(time, time_of({1, 4, 3, 2, 0}));
  CHECK(sum.median == 5);
  CHECK(sum.lower_quartile == 5);
  CHECK(sum.first_call == 5);
  CHECK(sum.rounds == std::vector<double>(5, 5));
}
