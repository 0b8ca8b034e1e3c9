#include "pleat/bench/op_survey.h"

#include <set>

#include <nlohmann/json.hpp>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using pleat::bench::op_problems;
using pleat::bench::prepare_op;
using Json = nlohmann::json;

TEST_CASE("op survey: every pass of every row runs, in both formats", "[bench]") {
  const std::set<std::string> slow{"update"};  // of all parameters of ResNet-18
  std::string last;
  for (Json problem : op_problems()) {
    const std::string row =
        problem.at("group").get<std::string>() + "/" + problem.at("row").get<std::string>();
    if (row == last || slow.count(problem.at("group")) > 0) continue;  // the small one is the first
    last = row;
    DYNAMIC_SECTION(row) {
      for (const std::string& pass : problem.at("passes").get<std::vector<std::string>>())
        for (const char* format : {"contiguous", "channels_last"}) {
          problem["pass"] = pass;
          problem["format"] = format;
          const pleat::bench::PreparedOp op = prepare_op(problem);
          REQUIRE(op.work);
          CHECK(op.bytes >= 0);
          op.work();
          op.work();
        }
    }
  }
}

TEST_CASE("op survey: names are of one row, and letters stand for sizes", "[bench]") {
  std::set<std::pair<std::string, std::string>> names;
  std::map<std::string, int> sizes;
  for (const Json& problem : op_problems()) {
    CAPTURE(problem);
    CHECK(names.emplace(problem.at("group"), problem.at("name")).second);
    CHECK(problem.at("torch").get<std::string>().find_first_of("{}") == std::string::npos);
    if (problem.at("group") == "broadcast") ++sizes[problem.at("row")];
    if (problem.at("name") == "cross_entropy of pixels 2x16x8x8 2x8x8")
      CHECK(problem.at("operands") ==
            Json::parse(R"([{"kind": "", "shape": [2, 16, 8, 8]}, {"kind": "<16", "shape": [2, 8, 8]}])"));
  }
  CHECK(names.size() > 800);
  for (const auto& [row, count] : sizes) CHECK(count == 3);
}

TEST_CASE("op survey: sizes go for letters, and calls are written as Python writes them", "[bench]") {
  for (const Json& problem : op_problems({{"E", 7}}))
    if (problem.at("row") == "exp") {
      CHECK(problem.at("name") == "exp 7");
      CHECK(problem.at("size") == "");
      CHECK(problem.at("torch") == "exp(x)");
    }
  CHECK_THROWS_AS(op_problems({{"Q", 7}}), pleat::ValueError);
  using pleat::bench::python_of;
  CHECK(python_of("mean(x, {2, 3}, true)") == "mean(x, (2, 3), True)");
  CHECK(python_of("max_pool2d(x, {.kernel_size = 3, .stride = 2})") ==
        "max_pool2d(x, kernel_size=3, stride=2)");
  CHECK(python_of("interpolate(x, {.size = {37, 41}})") == "interpolate(x, size=(37, 41))");
  CHECK(python_of("x.size(0)") == "x.size(0)");
}

TEST_CASE("op survey: rows and passes that there are not", "[bench]") {
  Json problem = op_problems().at(0);
  problem["format"] = "contiguous";
  problem["pass"] = "sideways";
  CHECK_FALSE(prepare_op(problem).work);
  problem["row"] = "no such row";
  CHECK_THROWS_AS(prepare_op(problem), pleat::ValueError);
}
