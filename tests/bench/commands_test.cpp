// The subcommands ops and step, through the program.
#include <set>

#include <nlohmann/json.hpp>

#include "pleat/op_cases/op_case.h"
#include "pleat/tests/bench/run.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using pleat::test::has;
using pleat::test::run_bench;

namespace {

/// What a short run finds, as --json writes it.
nlohmann::json results(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--device", "cpu", "--quick", "--seconds", "1e-4", "--json", "-"});
  const auto outcome = run_bench(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const auto found = nlohmann::json::parse(outcome.out)["results"];
  REQUIRE_FALSE(found.empty());
  for (const auto& result : found) {
    CAPTURE(result.dump());
    REQUIRE(result.contains("time"));
    CHECK(result["time"]["median"] > 0);
    CHECK(result["time"]["lower_quartile"] <= result["time"]["upper_quartile"]);
    CHECK(result["labels"]["device"] == "cpu");
  }
  return found;
}

std::set<std::string> all_of(const nlohmann::json& results, const std::string& label) {
  std::set<std::string> texts;
  for (const auto& result : results) texts.insert(result["labels"].value(label, ""));
  return texts;
}

}  // namespace

TEST_CASE("pleat-bench ops: passes, formats, sizes by letters, bytes of operands and results", "[bench]") {
  const auto found =
      results({"ops", "--match", "^norm/batch_norm( by the reference)? 3x8", "--letters", "N=3,C=8,H=5,W=4"});
  CHECK(all_of(found, "pass") == std::set<std::string>{"forward", "backward"});
  CHECK(all_of(found, "format") == std::set<std::string>{"contiguous", "channels_last"});
  CHECK(all_of(found, "problem") ==
        std::set<std::string>{"norm/batch_norm 3x8x5x4 8 8", "norm/batch_norm by the reference 3x8x5x4 8 8"});
  for (const auto& result : found)  // x, y and parameters; with dx, and gradients of parameters
    CHECK(result["values"]["bytes"] ==
          (result["labels"]["pass"] == "forward" ? 2 * 480 + 16 : 3 * 480 + 32) * 4);
  const auto rows =
      results({"ops", "--match", "^reduce/sum of rows", "--size", "small", "--pass", "forward"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["values"]["bytes"] == (32 * 100 + 32) * 4);
  CHECK(rows[0]["values"]["share_of_copy"] > 0);
}

TEST_CASE("pleat-bench ops: every pointwise function of the table of op cases", "[bench]") {
  const auto found =
      results({"ops", "--match", "^(math|activation|arithmetic|compare)/", "--letters",
               "E=1050,N=1,C=2,H=3,W=3,A=4,R=4,L=8", "--pass", "forward", "--format", "contiguous"});
  const auto problems = all_of(found, "problem");
  for (const pleat::test::OpFamily& family : pleat::test::op_families())
    for (const pleat::test::OpCase& row : family.cases())
      if (row.elementwise && row.variant.empty() && !row.name.ends_with('_')) {
        std::string problem = std::string(family.name) + '/' + row.name;
        for (std::size_t i = 0; i < row.inputs.size(); ++i) problem += " 1050";
        CAPTURE(problem);
        CHECK(problems.contains(problem));
      }
  const auto bytes = [&](const std::string& problem) {
    for (const auto& result : found)
      if (result["labels"]["problem"] == problem) return result["values"]["bytes"].get<int>();
    return 0;
  };
  CHECK(bytes("math/exp 1050") == 2 * 1050 * 4);
  CHECK(bytes("arithmetic/add 1050 1050") == 3 * 1050 * 4);
  CHECK(bytes("arithmetic/where 1050 1050 1050") == 1050 + 3 * 1050 * 4);
  CHECK(bytes("compare/isnan 1050") == 1050 * 4 + 1050);
}

TEST_CASE("pleat-bench step: networks, batches, implementations, mixed precision", "[bench]") {
  const auto found = results({"step", "--model", "small", "--batch-size", "2,4", "--implementation",
                              "auto,unfold", "--dtype", "bfloat16", "--format", "channels_last"});
  CHECK(all_of(found, "problem") ==
        std::set<std::string>{"small n2 bfloat16 channels_last", "small n2 bfloat16 channels_last unfold",
                              "small n4 bfloat16 channels_last", "small n4 bfloat16 channels_last unfold"});
  CHECK(found[0]["values"]["images_per_s"].get<double>() ==
        Approx(2 / found[0]["time"]["median"].get<double>()));
  CHECK(found[0]["values"]["gflops"] > 0);
}

TEST_CASE("pleat-bench draws what it measures", "[bench]") {
  const pleat_test::TemporaryDirectory folder;
  const std::string file = (folder / "picture.svg").string();
  REQUIRE(run_bench({"ops", "--match", "cast/clone", "--letters", "N=2,C=4,H=3,W=3", "--device", "cpu",
                     "--quick", "--seconds", "1e-4", "--plot", file})
              .status == 0);
  const auto bytes = pleat_test::read_bytes(file);
  const std::string svg(bytes.begin(), bytes.end());
  CHECK(has(svg, "channels_last"));
  CHECK(has(svg, "cast/clone 2x4x3x3"));
}

TEST_CASE("pleat-bench: options that make no sense are named before anything is measured", "[bench]") {
  const auto [arguments, message] = GENERATE(table<std::vector<std::string>, std::string>({
      {{"ops", "--match", "fast fourier"}, "ops: --match: no function has \"fast fourier\" in its name"},
      {{"ops", "--match", "("}, "ops: --match: is no regular expression"},
      {{"ops", "--match", ""}, "--match: must not be empty"},
      {{"ops", "--size", "huge"}, "--size"},
      {{"ops", "--letters", "N"}, "ops: --letters: must be like N=128, got \"N\""},
      {{"ops", "--letters", "N=0"}, "ops: --letters: must be a whole number from 1 to"},
      {{"ops", "--letters", "Q=3"}, "ops: --letters: there is no size \"Q\""},
      {{"ops", "--format", "nhwc"}, "--format"},
      {{"ops", "--pass", "sideways"}, "--pass"},
      {{"step", "--model", "alexnet"}, "--model"},
      {{"step", "--dtype", "int64"}, "--dtype"},
      {{"step", "--precision", "low"}, "--precision"},
      {{"step", "--batch-size", "0"}, "step: --batch-size: must be a whole number from 1"},
      {{"step", "--implementation", "fastest"}, "step: --implementation: must be auto or one of"},
  }));
  CAPTURE(arguments);
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--device", "cpu"});
  const auto outcome = run_bench(all);
  CHECK(outcome.status == 2);
  CHECK(has(outcome.err, message));
}

TEST_CASE("pleat-bench: a problem that no memory holds ends with a message", "[bench]") {
  const auto outcome = run_bench({"ops", "--match", "^product/matmul 1", "--letters", "M=16777216",
                                  "--device", "cpu", "--pass", "forward"});
  CHECK(outcome.status != 0);
  CHECK(has(outcome.err, "pleat-bench: "));
}
