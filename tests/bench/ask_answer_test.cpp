#include <algorithm>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/bench/ask/answer.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::made_up;

TEST_CASE("A time is longer than another only when their quartiles and 5 % are between them", "[ask]") {
  CHECK(comparison(made_up(4.6), made_up(2)) == "takes 2.30 times as long (2.21 to 2.39)");
  CHECK(comparison(made_up(2), made_up(4)) == "takes 0.500 times as long (0.48 to 0.52)");
  CHECK(comparison(made_up(280), made_up(2)) == "takes 140 times as long (134.51 to 145.71)");
  // For sure, but not by much.
  CHECK(comparison(made_up(1.04, 0), made_up(1, 0)) == "is level (1.04 to 1.04)");
  CHECK(comparison(made_up(1, 0), made_up(1.04, 0)) == "is level (0.96 to 0.96)");
  // By much, but not for sure.
  CHECK(comparison(made_up(1.3, 0.2), made_up(1, 0.2)) == "cannot be told apart in the noise (0.87 to 1.95)");
  CHECK(comparison(made_up(1, 0.2), made_up(1.3, 0.2)) == "cannot be told apart in the noise (0.51 to 1.15)");
  CHECK(comparison(made_up(1.3, 0.02), made_up(1, 0.02)) == "takes 1.30 times as long (1.25 to 1.35)");
}

TEST_CASE("Times of single runs become a median with quartiles, and may be scaled", "[ask]") {
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
}

TEST_CASE("Sentences of an answer are broken at spaces", "[ask]") {
  CHECK(list_item("so it is.") == "- so it is.");
  std::string sentence;
  for (int i = 0; i < 30; ++i) sentence += "word" + std::to_string(i) + ' ';
  const std::string lines = list_item(sentence) + '\n';
  CHECK(lines.substr(0, 7) == "- word0");
  CHECK(lines.find("\n  word") != std::string::npos);
  std::size_t longest = 0, start = 0;
  for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', start)) {
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  CHECK(longest <= 100);
  CHECK(longest > 90);
}

TEST_CASE("Times are found by label, added up, and compared within problems or ways", "[ask]") {
  Times times;
  for (const char* pass : {"forward", "backward"}) {
    times.add("batch 2", "direct", pass, made_up(1, 0.1));
    times.add("batch 2", "by hand", pass, made_up(30, 0.2));
    times.add("batch 4", "direct", pass, made_up(2, 0.1));
  }
  CHECK(times.values("problem") == Strings{"batch 2", "batch 4"});
  CHECK(times.only("problem", {"batch 2"}).values("way") == Strings{"direct", "by hand"});
  CHECK(times.only("problem", {"batch 4"}).values("way") == Strings{"direct"});
  CHECK(times.only("way", {"direct", "by hand"}).records.size() == 6);
  CHECK(times.only("way", {"unfold"}).records.empty());

  times.add_sum("both", {"forward", "backward"});
  CHECK(times.values("pass") == Strings{"forward", "backward", "both"});
  const Times both = times.only("pass", {"both"});
  REQUIRE(both.records.size() == 3);
  CHECK(both.values("problem") == times.values("problem"));
  CHECK(both.records[1].label("way") == "by hand");
  CHECK(both.records[1].time->median == Approx(60e-3));
  CHECK(both.records[1].time->lower_quartile == Approx(48e-3));
  CHECK(both.records[1].time->upper_quartile == Approx(72e-3));

  times.add("batch 2", "unfold", "both", made_up(2.02));
  // Of batch 4 there is nothing to be compared.
  CHECK(times.compare("problem", {"both", "forward"}, "way") ==
        Strings{"batch 2, both, beside direct: by hand takes 30.0 times as long (21.82 to 40.00); "
                "unfold is level (0.90 to 1.14); direct takes least, 2.00 ms.",
                "batch 2, forward, beside direct: by hand takes 30.0 times as long (21.82 to 40.00); "
                "direct takes least, 1.00 ms."});
  CHECK(times.compare("way", {"both"}, "problem") ==
        Strings{"direct, both, beside batch 2: batch 4 takes 2.00 times as long (1.64 to 2.44); "
                "batch 2 takes least, 2.00 ms."});
}

TEST_CASE("Passes of ways are timed together, and what tunes one is no part of its time", "[ask]") {
  const Tensor x = randn({3}).set_requires_grad();
  int runs = 0, recorded_runs = 0;
  const auto square = [&] {
    const Tensor y = x * x;
    ++runs;
    recorded_runs += y.requires_grad() ? 1 : 0;
    return y;
  };
  const AskOptions options{.timer = {.min_run_time = 1e-4, .min_blocks = 3}};
  Times times;
  CHECK(times.measure(options, "p", {{"a", square}}, {forward}).size() == 1);
  CHECK(runs > 2);
  CHECK(recorded_runs == 0);
  CHECK(times.records[0].time->tuning == 0);
  const auto measured =
      times.measure(options, "q", {{"a", square, {x}}, {"b", square, {x}, true}}, {recorded, backward});
  REQUIRE(measured.size() == 4);
  CHECK(recorded_runs > 2);
  const char* const names[][2] = {
      {"a", "forward, recorded"}, {"b", "forward, recorded"}, {"a", "backward"}, {"b", "backward"}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(measured[i].label("problem") == "q");
    CHECK(measured[i].label("way") == names[i][0]);
    CHECK(measured[i].label("pass") == names[i][1]);
    CHECK(measured[i].label("device") == "cpu");
    CHECK(measured[i].time->runs > 0);
    CHECK((measured[i].time->tuning > 0) == (i % 2 == 1));
  }
  CHECK(times.records.size() == 5);
  CHECK_FALSE(x.grad().defined());  // nothing is accumulated
}
