#include "pleat/profile/timer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::benchmark;

namespace {

/// A clock that stands still unless the subject moves it, so that no test depends on real time.
class FakeClock : public Clock {
 public:
  double now = 0;
  double device_share = 0;  ///< above 0: there is a device, which takes this share of the wall time
  double reading = 0;       ///< what start and stop take together
  int evictions = 0;

  void start() override { begin_ = now; }
  Elapsed stop() override {
    now += reading;
    Elapsed elapsed{now - begin_, {}};
    if (device_share > 0) elapsed.device = device_share * elapsed.wall;
    return elapsed;
  }
  void empty_caches() override { ++evictions; }

 private:
  double begin_ = 0;
};

struct Fixture {
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();

  Timer timer(double min_run_time, int64_t min_blocks = 5, bool cold = false) {
    return Timer(
        {.min_run_time = min_run_time, .min_blocks = min_blocks, .cold_cache = cold, .clock = clock});
  }
  std::function<void()> takes(double seconds) {
    return [this, seconds] { clock->now += seconds; };
  }
};

}  // namespace

TEST_CASE("a timer reports the time of one run, whatever the size of the block", "[profile]") {
  Fixture f;
  for (const double seconds : {1e-8, 1e-6, 3e-3, 2.0}) {
    const Measurement m = f.timer(0.2).measure(f.takes(seconds));
    CAPTURE(seconds, m.block_size);
    CHECK(m.median() == Approx(seconds));
    CHECK(m.lower_quartile() == Approx(seconds));
    CHECK(m.upper_quartile() == Approx(seconds));
    CHECK(m.wall_median() == Approx(seconds));
    CHECK(m.times.size() >= 5);
    CHECK(static_cast<double>(m.runs()) * seconds >= 0.2 * (1 - 1e-9));
    CHECK(m.threads == num_threads());
  }
}

TEST_CASE("a block is a thousandth of the time and ten thousand times the cost of the clock", "[profile]") {
  Fixture f;
  CHECK(f.timer(2.0).measure(f.takes(1.0)).block_size == 1);
  // 2 ms of 1 µs.
  const int64_t by_time = f.timer(2.0).measure(f.takes(1e-6)).block_size;
  CHECK(by_time >= 2000);
  CHECK(by_time <= 20'000);
  f.clock->reading = 1e-6;
  const Measurement m = f.timer(2.0).measure(f.takes(1e-6));
  CHECK(m.block_size >= 9'999);
  CHECK(m.median() == Approx(1e-6).epsilon(2e-4));
}

TEST_CASE("a clock that is slow to read leaves enough blocks for quartiles", "[profile]") {
  Fixture f;
  f.clock->reading = 50e-6;  // 10,000 times that is more than all the time there is
  f.clock->device_share = 0.5;
  const Measurement m = f.timer(0.2).measure(f.takes(1e-4));
  CHECK(m.times.size() >= 10);
  CHECK(m.block_size >= 90);
}

TEST_CASE("a function that takes no time at all ends, too", "[profile]") {
  Fixture f;
  int64_t runs = 0;
  const Measurement m = f.timer(0.1, 3).measure([&] { ++runs; });
  CHECK(m.times.size() == 3);
  CHECK(m.runs() <= runs);
  CHECK(m.median() == 0);
}

TEST_CASE("first call and tuning are told apart from the runs", "[profile]") {
  Fixture f;
  int calls = 0;
  int tunings = 0;
  const Measurement m = f.timer(0.1).measure({.run = [&] { f.clock->now += calls++ == 0 ? 7.0 : 0.01; },
                                              .tune =
                                                  [&] {
                                                    CHECK(calls == 0);
                                                    ++tunings;
                                                    f.clock->now += 3;
                                                  },
                                              .label = "table",
                                              .sub_label = "row",
                                              .description = "column"});
  CHECK(tunings == 1);
  CHECK(m.tuning == Approx(3));
  CHECK(m.first_call == Approx(7));
  CHECK(m.median() == Approx(0.01));
  CHECK(m.quantile(1) == Approx(0.01));
  CHECK(m.label + m.sub_label + m.description == "tablerowcolumn");
}

TEST_CASE("time between device events counts where there is a device", "[profile]") {
  Fixture f;
  f.clock->device_share = 0.75;
  const Measurement m = f.timer(0.1).measure(f.takes(0.02));
  CHECK(m.median() == Approx(0.015));
  CHECK(m.wall_median() == Approx(0.02));
}

TEST_CASE("with a cold cache each run is a block, after the caches were emptied", "[profile]") {
  Fixture f;
  int runs = 0;
  const Measurement m = f.timer(1e-4, 5, true).measure([&] {
    f.clock->now += 1e-5;
    ++runs;
    CHECK(f.clock->evictions == runs);
  });
  CHECK(m.block_size == 1);
  CHECK(m.cold_cache);
  CHECK(m.times.size() >= 10);
}

TEST_CASE("subjects take turns in alternating order, and leave when they had their time", "[profile]") {
  Fixture f;
  std::string order;
  const auto subject = [&](char name, double seconds) {
    return Subject{.run =
                       [&, name, seconds] {
                         order += name;
                         f.clock->now += seconds;
                       },
                   .description = std::string(1, name)};
  };
  // A block is a twentieth of the time: 1 s.
  const auto results =
      f.timer(20.0, 3).measure_in_turns({subject('a', 8.0), subject('b', 1.0), subject('c', 0.25)});
  REQUIRE(results.size() == 3);
  CHECK(results[0].description == "a");
  CHECK(results[0].times.size() == 3);
  CHECK(results[0].block_size == 1);
  CHECK(results[1].times.size() == 20);
  CHECK(results[2].block_size > 3);
  CHECK(results[2].median() == Approx(0.25));
  // Timed blocks begin after the last run of c's warm-up.
  const std::string c_block(static_cast<std::size_t>(results[2].block_size), 'c');
  const std::string wanted = "ab" + c_block + c_block + "ba" + "ab" + c_block + c_block + "b";
  CHECK(order.find(wanted) != std::string::npos);
  CHECK(f.timer(1).measure_in_turns({}).empty());
}

TEST_CASE("rounds are added for all subjects as long as more are wanted", "[profile]") {
  Fixture f;
  std::vector<std::size_t> rounds;
  std::vector<double> shares;
  TimerOptions options{.min_run_time = 0.3, .min_blocks = 3, .clock = f.clock};
  options.wants_more = [&](const std::vector<Measurement>& measured) {
    CHECK(measured[0].times.size() == measured[1].times.size());
    rounds.push_back(measured[0].times.size());
    return rounds.size() < 3;
  };
  options.on_progress = [&](double share) { shares.push_back(share); };
  const auto measured = Timer(options).measure_in_turns({{f.takes(1e-3)}, {f.takes(0.5)}});
  CHECK(rounds == std::vector<std::size_t>{3, 6, 9});
  for (const Measurement& one : measured) {
    CHECK(one.times.size() == 9);
    CHECK(static_cast<double>(one.block_size) * one.median() > 0.0999);  // enough in three rounds
  }
  REQUIRE(shares.size() == 18);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares[0] == Approx(1.0 / 6));
  CHECK(shares[5] == Approx(1));
}

TEST_CASE("a timer says how far it is", "[profile]") {
  Fixture f;
  std::vector<double> shares;
  const Timer timer({.min_run_time = 1, .min_blocks = 2, .clock = f.clock, .on_progress = [&](double share) {
                       shares.push_back(share);
                     }});
  (void)timer.measure(f.takes(0.25));
  CHECK(shares == std::vector<double>{0.25, 0.5, 0.75, 1});
}

TEST_CASE("the number of threads is set while a timer measures, and set back", "[profile]") {
  Fixture f;
  const int before = num_threads();
  const Timer timer({.threads = 3, .min_run_time = 0.01, .clock = f.clock});
  const Measurement m = timer.measure([&] {
    CHECK(num_threads() == 3);
    f.clock->now += 0.01;
  });
  CHECK(m.threads == 3);
  CHECK(num_threads() == before);
  CHECK_THROWS_AS(timer.measure([] { throw ValueError("inside"); }), ValueError);
  CHECK(num_threads() == before);
}

TEST_CASE("a timer says what is wrong with its options", "[profile]") {
  CHECK_THROWS_WITH(Timer({.min_run_time = -1}), "timer: min_run_time must be seconds of at least 0, got -1");
  CHECK_THROWS_WITH(Timer({.min_blocks = 0}), "timer: min_blocks must be at least 1, got 0");
  CHECK_THROWS_WITH(Timer({.threads = -2}), "timer: threads must be at least 1 (or 0: as set), got -2");
  CHECK_THROWS_WITH(Timer().measure(Subject{}), "timer: there is nothing to run, the function is empty");
  CHECK_THROWS_WITH(Timer().measure_in_turns({Subject{}}),
                    "timer: there is nothing to run, the function is empty");
}

TEST_CASE("the clock of the CPU moves and empties caches", "[profile]") {
  const auto clock = device_clock(Device());
  clock->start();
  clock->empty_caches();
  const Clock::Elapsed elapsed = clock->stop();
  CHECK(elapsed.wall > 0);
  CHECK_FALSE(elapsed.device.has_value());
}
