#include <memory>

#include "pleat/bench/ask/answer.h"
#include "pleat/bench/ask/work.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;
using namespace pleat::bench::ask;
using pleat::test::contains;
using pleat::test::made_up;

TEST_CASE("Times are found by label, added up, and compared within problems or ways", "[ask]") {
  Times times;
  for (const char* pass : {"forward", "backward"}) {
    times.add("batch 2", "direct", pass, made_up(1, 0.1));
    times.add("batch 2", "by hand", pass, made_up(30, 0.2));
    times.add("batch 2", "by hand", pass, made_up(20), "unfold");
    times.add("batch 4", "direct", pass, made_up(2, 0.1));
  }
  CHECK(times.values("problem") == Strings{"batch 2", "batch 4"});
  CHECK(times.only("problem", {"batch 2"}).values("way") == Strings{"direct", "by hand"});
  CHECK(times.only("problem", {"batch 4"}).values("way") == Strings{"direct"});
  CHECK(times.only("way", {"direct", "by hand"}).records.size() == 8);
  CHECK(times.only("way", {"unfold"}).records.empty());
  CHECK(times.only("piece", {"unfold"}).records.size() == 2);

  times.add_sum("both", {"forward", "backward"});
  CHECK(times.values("pass") == Strings{"forward", "backward", "both"});
  const Times both = times.only("pass", {"both"});
  REQUIRE(both.records.size() == 3);  // no pieces
  CHECK(both.values("problem") == times.values("problem"));
  CHECK(both.records[1].label("way") == "by hand");
  CHECK(both.records[1].time->median == Approx(60e-3));
  CHECK(both.records[1].time->lower_quartile == Approx(54e-3));
  CHECK(both.records[1].time->upper_quartile == Approx(66e-3));

  times.add("batch 2", "unfold", "both", made_up(2.02, 0.1));
  // Of batch 4 there is nothing to be compared.
  CHECK(times.compare("problem", {"both", "forward"}, "way") ==
        Strings{"batch 2, both, beside direct: by hand takes 30.0 times as long (26.67 to 32.73); "
                "unfold is level (1.01 to 1.01). direct; unfold take least, 2.00 ms.",
                "batch 2, forward, beside direct: by hand takes 30.0 times as long (26.67 to 32.73). "
                "direct takes least, 1.00 ms."});
  CHECK(times.compare("way", {"both"}, "problem") ==
        Strings{"direct, both, beside batch 2: batch 4 takes 2.00 times as long (2.00 to 2.00). "
                "batch 2 takes least, 2.00 ms."});
  times.add("batch 2", "onednn", "both", made_up(2, 0.1));
  times.add("batch 2", "cudnn", "both", made_up(1, 0.1));
  CHECK(times.compare("problem", {"both"}, "way") ==
        Strings{"batch 2, both, beside direct: by hand takes 30.0 times as long (26.67 to 32.73); "
                "cudnn takes 0.500 times as long (0.50 to 0.50); unfold (1.01 to 1.01); onednn (1.00 to "
                "1.00) are level. cudnn takes least, 1.00 ms."});
  times.set_ratios();
  CHECK(times.records[0].label("beside").empty());
  CHECK(times.records[1].label("beside") == "30.00 (26.67 to 32.73)");
  CHECK(times.records[2].label("beside").empty());  // a piece that no other way has
}

TEST_CASE("Pieces of ways stand side by side, and the largest is named", "[ask]") {
  Times times;
  times.add("2-D", "conv", forward, made_up(1));
  times.add("2-D", "fast", forward, made_up(5));
  times.add("2-D", "fast", forward, made_up(3), "unfold");
  times.add("2-D", "fast", forward, made_up(1), "fold");
  CHECK(times.side_by_side("all", "way", "piece") ==
        "all\n"
        "           whole    unfold      fold\n"
        "  conv  1.000 ms\n"
        "  fast  5.000 ms  3.000 ms  1.000 ms\n");
  CHECK(times.only("piece", {"unfold", "fold"}).largest_piece() ==
        "2-D, fast, forward: unfold takes 75 % of the time of all pieces.");
}

TEST_CASE("Ways that nothing beats all take least", "[ask]") {
  Times times;
  times.add("p", "a", forward, made_up(1, 0.5));
  times.add("p", "b", forward, made_up(1.01, 0.5, true));  // beside it nothing is sure
  times.add("p", "c", forward, made_up(1.2, 0.5));
  const Strings sentences = times.compare("problem", {forward}, "way");
  REQUIRE(sentences.size() == 1);
  CHECK(contains(sentences, ". a; b take least, 1.00 ms."));
  CHECK(
      contains(sentences, "c takes 1.20 times as long (1.20 to 1.20); b cannot be told apart in the noise"));
}

TEST_CASE("A conclusion from disturbed rounds is withheld", "[ask]") {
  Times times;
  times.add("p", "a", forward, time_of(std::vector(9, 1e-3)));
  times.add("p", "b", forward, time_of({1.3e-3, 5e-3, 9e-3, 13e-3, 2e-3, 1.5e-3, 14e-3, 6e-3, 7e-3}));
  CHECK(
      times.compare("problem", {forward}, "way") ==
      Strings{"p, forward, beside a: b was disturbed (1.30 to 14.00; fastest rounds 1.30). Which takes least "
              "is not known: measure again when nothing else runs."});
  times.set_ratios();
  CHECK(times.records[1].label("beside") == "6.00 (1.30 to 14.00) ~");
  for (Record& record : times.records) set_work(record, {.calls = 1, .flops = 0, .bytes = 1});
  CHECK(contains(times.reasons(), "; that it takes longer is not sure."));
  times.add("p", "b", forward, made_up(1, 0.5), "unfold");
  CHECK(contains({times.only("piece", {"unfold"}).largest_piece()}, ", of which some were disturbed."));
}

TEST_CASE("Why a way takes longer is what it does more, as counted", "[ask]") {
  Times times;
  const auto add = [&](const char* problem, const char* way, double milliseconds, const Work& work) {
    times.add(problem, way, forward, made_up(milliseconds));
    set_work(times.records.back(), work);
  };
  add("p", "direct", 1, {.calls = 1, .flops = 2e6, .bytes = 1 << 20});
  add("p", "by hand", 3, {.calls = 3, .flops = 2e6, .bytes = 10 << 20});
  add("q", "direct", 1, {.calls = 1, .flops = 2e6, .bytes = 1 << 20});
  add("q", "reference", 3, {.calls = 1, .flops = 2e6, .bytes = 1 << 20});
  add("level", "a", 1, {.calls = 1, .flops = 0, .bytes = 1 << 20});
  add("level", "b", 1, {.calls = 9, .flops = 0, .bytes = 1 << 20});
  CHECK(times.reasons() ==
        Strings{
            "p, forward: by hand makes 3 calls, 2 MFLOP of products, moves 10.0 MiB; direct makes 1 call, 2 "
            "MFLOP of products, moves 1.0 MiB: 10 times the memory traffic.",
            "q, forward: reference makes 1 call, 2 MFLOP of products, moves 1.0 MiB; direct makes 1 call, 2 "
            "MFLOP of products, moves 1.0 MiB: no more work, but done in another way or another order of "
            "memory."});

  times.add_sum("twice", {forward, forward});
  CHECK(contains(times.reasons(),
                 "p, twice: by hand makes 6 calls, 4 MFLOP of products, moves 20.0 MiB; direct"));

  // What the profiler counts: two products of [8, 16] and [16, 4], and a sum.
  const Tensor x = randn({8, 16}), w = randn({16, 4});
  const Work work = work_of([&] { (void)(matmul(x, w) + matmul(x, w)); });
  CHECK(work.calls == 3);
  CHECK(work.flops == 2 * 2 * 8 * 16 * 4);
  CHECK(work.bytes >= 4 * (2 * (8 * 16 + 16 * 4 + 8 * 4) + 3 * 8 * 4));
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
  const AskOptions options{.timer = {.min_run_time = 0.45, .min_blocks = 9, .clock = clock}};
  const auto takes = [&](std::vector<double> seconds) {
    return [=, run = 0]() mutable {
      clock->now += seconds[static_cast<std::size_t>(run++) % seconds.size()];
      return Tensor();
    };
  };
  const auto rounds_of = [&](const std::vector<double>& a, const std::vector<double>& b) {
    Times times;
    const auto records =
        times.measure(options, of_problem("p", {{"a", takes(a)}, {"b", takes(b)}}), {forward});
    CHECK(records[0].time->rounds.size() == records[1].time->rounds.size());
    return records[0].time->rounds.size();
  };
  CHECK(rounds_of({0.1}, {0.13}) == 9);
  CHECK(rounds_of({0.1}, {0.101}) == 9);
  CHECK(rounds_of({0.1}, {0.1, 0.11, 0.1, 0.11, 0.09}) > 9);         // level, for who looks longer
  CHECK(rounds_of({0.03}, {0.03, 0.015, 0.015, 0.03, 0.06}) == 90);  // never for sure
  CHECK(rounds_of({0.02}, {0.026, 0.1, 0.18, 0.2, 0.04}) > 9);       // longer, but disturbed
  CHECK(rounds_of({6}, {6, 3, 3, 6, 12}) < 27);                      // no longer than 20 seconds more
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
  CHECK(times.measure(options, of_problem("p", {{"a", square}}), {forward}).size() == 1);
  CHECK(runs > 2);
  CHECK(recorded_runs == 0);
  CHECK(times.records[0].time->tuning == 0);
  const auto measured = times.measure(
      options, of_problem("q", {{"a", square, {x}}, {"b", square, {x}, true}}), {recorded, backward});
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
