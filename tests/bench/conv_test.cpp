#include <nlohmann/json.hpp>

#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/tests/bench/run.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using pleat::test::has;

namespace {

pleat::test::BenchOutcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "conv");
  return pleat::test::run_bench(arguments);
}

}  // namespace

TEST_CASE("pleat-bench conv reports what the issue of a time is", "[bench]") {
  const pleat_test::TemporaryDirectory folder;
  const std::string json = (folder / "a.json").string();
  const auto outcome = run({"--shape",          "hw8 c4 k4 n2 r3 p1",
                            "--shape",          "n1 c4 k4 w9 r2 g2",
                            "--pass",           "forward,backward_weight",
                            "--implementation", "direct,winograd",
                            "--device",         "cpu",
                            "--threads",        "1",
                            "--seconds",        "1e-3",
                            "--quick",          "--check",
                            "--json",           json,
                            "--plot",           (folder / "a.svg").string()});
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK(has(outcome.out, "n2 c4 k4 hw8 r3 s1 p1  float32  channels_last"));
  CHECK(has(outcome.out, "not run: it needs groups = 1"));
  const auto bytes = pleat_test::read_bytes(json);
  const auto results = nlohmann::json::parse(bytes)["results"];
  REQUIRE(results.size() == 8);
  const auto first = results[0];
  CHECK(first["labels"]["problem"] == "n2 c4 k4 hw8 r3 s1 p1");
  CHECK(first["labels"]["pass"] == "forward");
  CHECK(first["labels"]["implementation"] == "direct");
  CHECK(first["time"]["median"] > 0);
  CHECK(first["time"]["lower_quartile"] <= first["time"]["median"]);
  CHECK(first["time"]["first_call"] > 0);
  CHECK(first["time"]["threads"] == 1);
  CHECK(first["values"]["flops"] == 2 * 2 * 4 * 64 * 36);
  CHECK(first["values"]["flops_valid"] < first["values"]["flops"]);
  for (const int pass : {0, 2})  // input, weight and output once each
    CHECK(results[pass]["values"]["bytes"] == 4 * (2 * 4 * 64 + 4 * 4 * 9 + 2 * 4 * 64));
  CHECK(first["values"]["gflops"].get<double>() ==
        Approx(first["values"]["flops"].get<double>() / first["time"]["median"].get<double>() / 1e9));
  CHECK(first["values"]["share_of_peak"] > 0);
  CHECK(first["values"]["workspace_bytes"] >= 0);
  CHECK(first["values"]["error"] < 1e-5);
  CHECK(first["details"]["checked_against"] == "reference in float64");
  for (const auto& record : results) {
    const bool unsupported = record["labels"]["implementation"] == "winograd";
    CHECK(record.contains("failure") == unsupported);
    CHECK(record.contains("time") != unsupported);
  }
  const auto svg = pleat_test::read_bytes(folder / "a.svg");
  const std::string picture(svg.begin(), svg.end());
  CHECK(has(picture, "<svg"));
  CHECK(has(picture, "n1 c4 k4 w9 r2 s1 p0 g2"));
  CHECK(has(picture, "backward_weight, winograd"));
}

TEST_CASE("pleat-bench conv says what is wrong with its arguments", "[bench]") {
  const auto [arguments, message] = GENERATE(table<std::vector<std::string>, std::string>({
      {{"--shape", "n1 c3 hw8 r3"}, "k is missing; write for example"},
      {{"--shape", "c3 k4 hw2 r5"}, "shape \"c3 k4 hw2 r5\": conv2d: a kernel of 5"},
      {{"--shape", "c3 k4 hw8 r3", "--pass", "forwards"},
       "--pass: must be some of forward, backward_input, backward_weight, all"},
      {{"--shape", "c3 k4 hw8 r3", "--implementation", "winograd9"},
       "--implementation: on cpu there are direct"},
      {{"--shape", "c3 k4 hw8 r3", "--dtype", "int8"}, "--dtype: must be some of float64, float32"},
      {{"--shape", "c3 k4 hw8 r3", "--format", "nhwc"},
       "--format: must be some of auto, contiguous, channels_last"},
      {{"--shape", "c3 k4 hw8 r3", "--precision", "best"}, "--precision: best not in {"},
      {{"--shape", "c3 k4 hw8 r3", "--batch", "0"}, "--batch"},
  }));
  CAPTURE(arguments);
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--device", "cpu"});
  const auto outcome = run(all);
  CHECK(outcome.status == 2);
  CHECK(has(outcome.err, message));
}

TEST_CASE("a file of shapes that cannot be read is named", "[bench]") {
  const auto outcome = run({"--shapes", "no_such_file.csv", "--device", "cpu"});
  CHECK(outcome.status == 1);
  CHECK(has(outcome.err, "--shapes: 'no_such_file.csv': cannot open"));
}

TEST_CASE("pleat-bench conv takes an empty batch", "[bench]") {
  const auto outcome = run({"--shape", "n0 c3 k4 hw8 r3", "--device", "cpu", "--seconds", "1e-4", "--quick"});
  CHECK(outcome.status == 0);
  CHECK(has(outcome.out, "backward_weight"));
}

TEST_CASE("pleat-bench list tells what each implementation computes, and why not the rest", "[bench]") {
  const auto all = pleat::test::run_bench({"list", "--device", "cpu"});
  REQUIRE(all.status == 0);
  for (const std::string& implementation : ops::conv_implementations(Device()))
    CHECK(has(all.out, "convolution  " + implementation + "  cpu"));
  CHECK(has(all.out, "batch norm  native  cpu"));
  CHECK(has(all.out, "it needs groups = 1"));
  const auto one =
      pleat::test::run_bench({"list", "--shape", "c4 k4 hw5 r3 g2", "--device", "cpu", "--json", "-"});
  REQUIRE(one.status == 0);
  const auto results = nlohmann::json::parse(one.out)["results"];
  CHECK(results.size() >= ops::conv_implementations(Device()).size());  // a name may stand for several
  CHECK(results[0]["labels"]["implementation"] == "direct");
  CHECK(results[0]["details"]["computes"] == "all passes");
}

TEST_CASE("a precision that changes nothing is pointed out, and is no part of the result", "[bench]") {
  const auto outcome = run({"--shape", "c2 k2 w9 r3", "--pass", "forward", "--implementation", "unfold",
                            "--device", "cpu", "--seconds", "1e-4", "--quick", "--precision", "high"});
  CHECK(outcome.status == 0);
  CHECK(has(outcome.out, "--precision changes nothing on the CPU"));
  CHECK(has(outcome.out, "n1 c2 k2 w9 r3 s1 p0  float32  channels_last\n"));
}
