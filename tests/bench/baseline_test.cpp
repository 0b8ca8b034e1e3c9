#include "pleat/bench/report.h"
#include "pleat/tests/catch.h"

using namespace pleat::bench;
using pleat::benchmark::Measurement;

namespace {

Measurement time(double median, double half_range) {
  Measurement t;
  t.times = {median - half_range, median - half_range, median, median + half_range, median + half_range};
  return t;
}

Record record(const std::string& subcommand, const std::string& problem, const Measurement& t) {
  return {.subcommand = subcommand, .labels = {{"problem", problem}}, .time = t};
}

}  // namespace

TEST_CASE("a time has changed when the quartiles do not meet and it is over 2 %", "[bench]") {
  CHECK(change_of(time(1, 0.01), time(1.1, 0.01)) == Change::slower);
  CHECK(change_of(time(1, 0.01), time(0.9, 0.01)) == Change::faster);
  CHECK(change_of(time(1, 0.06), time(1.1, 0.06)) == Change::same);  // quartiles meet
  CHECK(change_of(time(1, 0.06), time(0.9, 0.05)) == Change::same);
  CHECK(change_of(time(1, 0.001), time(1.015, 0.001)) == Change::same);  // steady, but by a hair
  CHECK(change_of(time(1, 0.001), time(0.985, 0.001)) == Change::same);
  CHECK(change_of(time(1, 0.001), time(1.03, 0.001)) == Change::slower);
  CHECK(change_of(time(1, 0), time(1, 0)) == Change::same);
}

TEST_CASE("changes are found by subcommand and labels", "[bench]") {
  const Results before{.machine = "",
                       .command = "",
                       .records = {record("conv", "a", time(1, 0.01)), record("conv", "b", time(1, 0.01)),
                                   record("norm", "a", time(1, 0.01))}};
  Results now{.machine = "",
              .command = "",
              .records = {record("conv", "c", time(1, 0.01)), record("conv", "a", time(2, 0.01)),
                          record("conv", "d", time(1, 0.01))}};
  now.records.back().time.reset();
  now.records.back().failure = "out of memory";
  // "norm" did not run now, so nothing of it is missing.
  CHECK(comparison(before, now, "old.json", false) ==
        "  compared with old.json   before      now  now/before\n"
        "  c                             -  1.000 s              new\n"
        "  a                       1.000 s  2.000 s       2.000  SLOWER\n"
        "  b                       1.000 s        -              no longer there\n"
        "0 faster, 1 slower, 0 within the noise, 1 new, 1 no longer there");
}

TEST_CASE("a comparison counts what moved and warns of another machine", "[bench]") {
  Results before{.machine = "one", .command = "", .records = {record("conv", "a", time(1e-3, 1e-5))}};
  Results now{.machine = "one", .command = "", .records = {record("conv", "a", time(2e-3, 1e-5))}};
  CHECK(comparison(before, now, "old.json", false) ==
        "  compared with old.json    before       now  now/before\n"
        "  a                       1.000 ms  2.000 ms       2.000  SLOWER\n"
        "0 faster, 1 slower, 0 within the noise, 0 new, 0 no longer there");
  CHECK(comparison(before, now, "old.json", true).find("\x1b[1;31m") != std::string::npos);
  now.machine = "two";
  CHECK(comparison(before, now, "old.json", false).find("The machines differ") != std::string::npos);
}

TEST_CASE("a comparison in which everything moved alike points at the machine", "[bench]") {
  Results before{.machine = "one", .command = "", .records = {}};
  Results now = before;
  for (const char* problem : {"a", "b", "c"}) {
    before.records.push_back(record("conv", problem, time(1e-3, 1e-5)));
    now.records.push_back(record("conv", problem, time(1.3e-3, 1e-5)));
  }
  CHECK(comparison(before, now, "old.json", false).find("The median of all ratios is 1.30") !=
        std::string::npos);
  now.records[0].time = now.records[1].time = time(1e-3, 1e-5);
  CHECK(comparison(before, now, "old.json", false).find("The median of all ratios") == std::string::npos);
}
