#include "pleat/bench/record.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "pleat/bench/report.h"
#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

namespace {

Record sample(const std::string& implementation, double median) {
  Record record{.subcommand = "conv",
                .labels = {{"problem", "n1 c2"}, {"pass", "forward"}, {"implementation", implementation}}};
  record.time.emplace();
  record.time->times = {0.99 * median, median, 1.02 * median};
  record.set_value("gflops", 12.5);
  return record;
}

}  // namespace

TEST_CASE("results survive the way through a file", "[bench]") {
  Results results{.machine = "cpu: a \"fast\" one", .command = "pleat-bench conv", .records = {}};
  results.records.push_back(sample("direct", 0.001));
  results.records.back().set_detail("plan", "eng1_k2=3");
  results.records.push_back(sample("winograd", 1));
  results.records.back().time.reset();
  results.records.back().failure = "needs stride 1\nand a kernel of 3";
  const Results read = results_from_text(to_text(results), "x.json");
  CHECK(read.machine == results.machine);
  CHECK(read.command == results.command);
  CHECK(to_text(read) == to_text(results));
  REQUIRE(read.records.size() == 2);
  CHECK(read.records[0].time->times == results.records[0].time->times);
  CHECK(read.records[0].label("plan") == "eng1_k2=3");
  CHECK(read.records[1].failure == results.records[1].failure);
}

TEST_CASE("numbers without a value in JSON are left out", "[bench]") {
  Record record = sample("direct", 1);
  record.set_value("error", std::numeric_limits<double>::quiet_NaN());
  record.set_value("share", std::numeric_limits<double>::infinity());
  CHECK_FALSE(record.value("error").has_value());
  CHECK_FALSE(record.value("share").has_value());
  record.set_value("gflops", 3);
  CHECK(record.value("gflops") == 3.0);
  CHECK(record.values.size() == 1);
}

TEST_CASE("what is no result is refused by name", "[bench]") {
  for (const char* text : {"", "[]", "{}", "{\"pleat_bench\": 2}",
                           R"({"pleat_bench": 2, "machine": "m", "command": "c", "results": [{}]})",
                           R"({"pleat_bench": 2, "machine": "m", "command": "c", "results": [3]})",
                           R"({"pleat_bench": 2, "machine": 3, "command": "c", "results": []})"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(results_from_text(text, "x.json"),
                      Catch::Matchers::StartsWith("x.json: is not a result of pleat-bench"));
  }
  Results results{.machine = "m", .command = "c", .records = {sample("direct", 1)}};
  results.records[0].time->times[1] = -1;
  CHECK_THROWS_AS(results_from_text(to_text(results), "x.json"), FileError);
}

TEST_CASE("the fastest of those that compute the same is marked", "[bench]") {
  std::vector<Record> records{sample("direct", 1.0), sample("unfold", 1.005), sample("reference", 9)};
  CHECK(fastest(records, {"problem", "pass"}) == std::vector<bool>{true, true, false});
  CHECK(fastest(records, {"implementation"}) == std::vector<bool>{false, false, false});  // alone
  CHECK(fastest(records, {}) == std::vector<bool>{false, false, false});
  records[0].time.reset();
  CHECK(fastest(records, {"problem", "pass"}) == std::vector<bool>{false, true, false});
}

TEST_CASE("a table has a column for each that says something", "[bench]") {
  std::vector<Record> records{sample("direct", 0.0012), sample("unfold", 0.0345)};
  records.push_back({.subcommand = "conv",
                     .labels = {{"problem", "n1 c2"}, {"pass", "forward"}, {"implementation", "cudnn"}},
                     .failure = "built without CUDA"});
  const Layout layout{.heading = {"problem"},
                      .columns = {"implementation", "median", "plan", "gflops"},
                      .competing = {"pass"}};
  CHECK(table(records, layout, false) ==
        "n1 c2\n"
        "  implementation      median  GFLOP/s\n"
        "  direct          1.200 ms       12.5  * fastest\n"
        "  unfold          34.50 ms       12.5\n"
        "  cudnn                                not run: built without CUDA\n");
  CHECK(table(records, layout, true).find("\x1b[1;32m  direct") != std::string::npos);
}
