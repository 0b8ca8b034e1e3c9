// Ratios of times that were measured in turns, and the sentences that pleat-bench ask makes of them.
#include <algorithm>
#include <memory>

#include "pleat/bench/ask/compare.h"
#include "pleat/core/base/error.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;
using namespace pleat::bench::ask;
using benchmark::Measurement;

namespace {

Measurement time_of(const std::vector<double>& rounds) {
  Measurement time;
  time.times = time.wall_times = rounds;
  time.first_call = rounds.front();
  return time;
}

/// A time as if it had been measured in nine rounds, which lie by up to `spread` of the median below and
/// above it; `falling`: the longest first, so that the ratio to one that is not is as uncertain as the
/// rounds.
Measurement made_up(double milliseconds, double spread = 0.02, bool falling = false) {
  std::vector<double> rounds;
  for (int round = -4; round <= 4; ++round)
    rounds.push_back(1e-3 * milliseconds * (1 + spread * (falling ? -round : round) / 4));
  return time_of(rounds);
}

bool says(const Strings& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& sentence) { return sentence.find(part) != std::string::npos; });
}

std::string beside(const Measurement& time, const Measurement& other) { return ratio(time, other).text(); }

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
  const Measurement busy = time_of({1.3, 5.2, 9, 13, 1.99, 1.5, 13.5, 6.5, 7.5}),
                    quiet = time_of(std::vector(9, 1.0));
  const Ratio one = ratio(busy, quiet);
  CHECK(one.verdict() == Verdict::disturbed);
  CHECK(one.text() == "was disturbed (1.30 to 13.50; fastest rounds 1.30)");
  CHECK(ratio(quiet, busy).verdict() == Verdict::disturbed);
  // All but the first few rounds alike, and still not what the way takes alone.
  std::vector<double> rounds(90, 5.0);
  rounds[7] = rounds[30] = 1.3;
  CHECK(beside(time_of(rounds), time_of(std::vector(90, 1.0))) ==
        "was disturbed (5.00 to 5.00; fastest rounds 1.30)");
  // A few disturbed rounds of many do no harm.
  std::vector<double> few(90, 1.3);
  for (std::size_t i = 0; i < 30; ++i) few[3 * i] = 9;
  CHECK(beside(time_of(few), time_of(std::vector(90, 1.0))) == "takes 1.30 times as long (1.30 to 1.30)");
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
  CHECK_THROWS_AS(ratio(Measurement(), time_of({1})), ValueError);
}

TEST_CASE("A conclusion sets all ways beside the first, and names those that nothing beats", "[ask]") {
  Compare compare({});
  compare.add("p", "direct", "forward", made_up(1, 0.1));
  compare.add("p", "by hand", "forward", made_up(30, 0.2));
  compare.add("q", "direct", "forward", made_up(2, 0.1));  // alone
  CHECK(compare.blocks().size() == 2);
  CHECK(says(compare.conclusion(),
             "p, forward, beside direct: by hand takes 30.0 times as long (26.67 to 32.73). direct takes "
             "least, 1.00 ms."));
  CHECK_FALSE(says(compare.conclusion(), "q, forward, beside"));
  CHECK(compare.records[0].label("beside").empty());
  CHECK(compare.records[1].label("beside") == "30.00 (26.67 to 32.73)");

  Compare level({});
  level.add("p", "a", "forward", made_up(1, 0.5));
  level.add("p", "b", "forward", made_up(1.01, 0.5, true));  // beside it nothing is sure
  level.add("p", "c", "forward", made_up(1.2, 0.5));
  CHECK(says(level.conclusion(), "c takes 1.20 times as long (1.20 to 1.20). a; b take least, 1.00 ms."));

  Compare disturbed({});
  disturbed.add("p", "a", "forward", time_of(std::vector(9, 1e-3)));
  disturbed.add("p", "b", "forward", time_of({1.3e-3, 5e-3, 9e-3, 13e-3, 2e-3, 1.5e-3, 14e-3, 6e-3, 7e-3}));
  CHECK(says(disturbed.conclusion(), "b was disturbed (1.30 to 14.00; fastest rounds 1.30)."));
  CHECK(disturbed.records[1].label("beside") == "6.00 (1.30 to 14.00) ~");
}

TEST_CASE("A conclusion names the time that a first call falsifies most", "[ask]") {
  Compare compare({});
  compare.add("p", "a", "forward", made_up(10));
  compare.add("p", "b", "backward", made_up(80));
  compare.records[1].time->first_call = 0.8;
  CHECK(says(compare.conclusion(), "mislead most about p, backward, b: 800 ms instead of 80.0 ms."));
}

TEST_CASE("Why a way takes longer is what it does more, as counted", "[ask]") {
  Compare compare({});
  const auto add = [&](const char* problem, const char* way, double milliseconds, double calls,
                       double bytes) {
    compare.add(problem, way, forward, made_up(milliseconds));
    Record& record = compare.records.back();
    record.set_value("calls", calls);
    record.set_value("flops", 2e6);
    record.set_value("bytes", bytes * (1 << 20));
  };
  add("p", "direct", 1, 1, 1);
  add("p", "by hand", 3, 3, 10);
  add("q", "direct", 1, 1, 1);
  add("q", "reference", 3, 1, 1);
  add("level", "a", 1, 1, 1);
  add("level", "b", 1, 9, 1);
  CHECK(compare.reasons() ==
        Strings{
            "p, forward: by hand makes 3 calls, 2 MFLOP of products, moves 10.0 MiB; direct makes 1 call, 2 "
            "MFLOP of products, moves 1.0 MiB: 10 times the memory traffic.",
            "q, forward: reference makes 1 call, 2 MFLOP of products, moves 1.0 MiB; direct makes 1 call, 2 "
            "MFLOP of products, moves 1.0 MiB: no more work, but done in another way or another order of "
            "memory."});

  // What the profiler counts: two products of [8, 16] and [16, 4], and a sum.
  const Tensor x = randn({8, 16}), w = randn({16, 4});
  Compare counted({.timer = {.min_run_time = 1e-4, .min_blocks = 3}});
  counted.measure("products", {{"a", [=] { return matmul(x, w) + matmul(x, w); }}}, {forward});
  CHECK(counted.records[0].value("calls") == 3);
  CHECK(counted.records[0].value("flops") == 2 * 2 * 8 * 16 * 4);
  CHECK(counted.records[0].value("bytes") >= 4 * (2 * (8 * 16 + 16 * 4 + 8 * 4) + 3 * 8 * 4));
}

namespace {

/// A clock that only computations move.
class FakeClock : public benchmark::Clock {
 public:
  double now = 0;
  void start() override { begin_ = now; }
  Elapsed stop() override { return {now - begin_, {}}; }
  void empty_caches() override {}

 private:
  double begin_ = 0;
};

}  // namespace

TEST_CASE("Ways that cannot be told apart yet run longer, and those that can do not", "[ask]") {
  const auto clock = std::make_shared<FakeClock>();
  const auto takes = [&](std::vector<double> seconds) {
    return [=, run = 0]() mutable {
      clock->now += seconds[static_cast<std::size_t>(run++) % seconds.size()];
      return Tensor();
    };
  };
  const auto rounds_of = [&](const std::vector<double>& a, const std::vector<double>& b) {
    Compare compare({.timer = {.min_run_time = 0.45, .min_blocks = 9, .clock = clock}});
    compare.measure("p", {{"a", takes(a)}, {"b", takes(b)}}, {forward});
    CHECK(compare.records[0].time->times.size() == compare.records[1].time->times.size());
    return compare.records[0].time->times.size();
  };
  CHECK(rounds_of({0.1}, {0.13}) == 9);
  CHECK(rounds_of({0.1}, {0.101}) == 9);
  CHECK(rounds_of({0.1}, {0.1, 0.11, 0.1, 0.11, 0.09}) > 9);         // level, for who looks longer
  CHECK(rounds_of({0.03}, {0.03, 0.015, 0.015, 0.03, 0.06}) == 90);  // never for sure
  CHECK(rounds_of({0.02}, {0.026, 0.1, 0.18, 0.2, 0.04}) > 9);       // longer, but disturbed
  CHECK(rounds_of({6}, {6, 3, 3, 6, 12}) < 27);                      // no longer than 20 seconds more
}

TEST_CASE("Passes of ways are timed, what tunes one is no part of its time, and pieces add up", "[ask]") {
  const Tensor x = randn({3}).set_requires_grad();
  int runs = 0, recorded_runs = 0;
  const auto square = [&] {
    const Tensor y = x * x;
    ++runs;
    recorded_runs += y.requires_grad() ? 1 : 0;
    return y;
  };
  Compare compare({.timer = {.min_run_time = 1e-4, .min_blocks = 3}});
  compare.measure("p", {{"a", square}}, {forward});
  CHECK(runs > 2);
  CHECK(recorded_runs == 0);
  compare.measure("q", {{"a", square, {x}}, {"b", square, {x}, true}}, {recorded, ask::backward});
  REQUIRE(compare.records.size() == 5);
  CHECK(recorded_runs > 2);
  for (std::size_t i = 1; i < 5; ++i) {
    const Record& record = compare.records[i];
    CHECK(record.label("problem") == "q");
    CHECK(record.label("way") == (i % 2 == 1 ? "a" : "b"));
    CHECK(record.label("pass") == (i < 3 ? recorded : ask::backward));
    CHECK(record.label("device") == "cpu");
    CHECK(record.time->runs() > 0);
    CHECK((record.time->tuning > 0) == (i % 2 == 0));
  }
  CHECK_FALSE(x.grad().defined());  // nothing is accumulated
  compare.measure_pieces("by hand", {{"unfold", square}, {"fold", square}}, {forward});
  CHECK(says(compare.conclusion(), "by hand, forward: "));
  CHECK(says(compare.conclusion(), " % of the time of all pieces."));
  CHECK_FALSE(says(compare.conclusion(), "by hand, forward, beside"));
}
