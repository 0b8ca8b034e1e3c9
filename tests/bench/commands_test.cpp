// The subcommands norm, unfold, elementwise, matmul, step and ceilings, through the program.
#include <cmath>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "pleat/bench/program.h"
#include "pleat/bench/training_step.h"
#include "pleat/core/base/error.h"
#include "pleat/models/small_cnn.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/op_cases/op_case.h"
#include "pleat/tests/temporary_directory.h"

namespace {

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--device", "cpu"});
  std::ostringstream out, err;
  const int status = pleat::bench::run_program(arguments, out, err);
  return {status, out.str(), err.str()};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What a short run finds, as --json writes it.
nlohmann::json results(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--quick", "--seconds", "1e-4", "--json", "-"});
  const Outcome outcome = run(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out)["results"];
}

std::set<std::string> all_of(const nlohmann::json& results, const std::string& label) {
  std::set<std::string> texts;
  for (const auto& result : results) texts.insert(result["labels"].value(label, ""));
  return texts;
}

void check_times(const nlohmann::json& results) {
  REQUIRE_FALSE(results.empty());
  for (const auto& result : results) {
    CAPTURE(result.dump());
    REQUIRE(result.contains("time"));
    CHECK(result["time"]["median"] > 0);
    CHECK(result["time"]["lower_quartile"] <= result["time"]["upper_quartile"]);
    CHECK(result["labels"]["device"] == "cpu");
  }
}

void check_errors(const nlohmann::json& results, double limit) {
  for (const auto& result : results) {
    CAPTURE(result.dump());
    REQUIRE(result["values"].contains("error"));
    CHECK(result["values"]["error"] < limit);
  }
}

}  // namespace

TEST_CASE("pleat-bench norm: every layer, pass and format, with the right results", "[bench]") {
  const auto found =
      results({"norm", "--shape", "3,8,5,4", "--layer", "batch,layer,group,instance", "--groups", "2",
               "--implementation", "native,reference", "--dtype", "float32,float64", "--check"});
  check_times(found);
  check_errors(found, 1e-5);
  CHECK(all_of(found, "layer") == std::set<std::string>{"batch", "layer", "group (2)", "instance"});
  CHECK(all_of(found, "pass") == std::set<std::string>{"forward", "backward"});
  CHECK(all_of(found, "format") == std::set<std::string>{"contiguous", "channels_last"});
  CHECK(all_of(found, "implementation").contains("native"));
  CHECK(all_of(found, "implementation").contains("reference"));
  for (const auto& result : found)
    CHECK(result["values"]["bytes"] == (result["labels"]["pass"] == "forward" ? 2 : 3) * 3 * 8 * 5 * 4 *
                                           (result["labels"]["dtype"] == "float32" ? 4 : 8));
}

TEST_CASE("pleat-bench norm: evaluation and a fused relu", "[bench]") {
  const auto found =
      results({"norm", "--shape", "4,6,3", "--eval", "--relu", "--check", "--dtype", "float64"});
  check_times(found);
  check_errors(found, 1e-11);
  CHECK(all_of(found, "layer") == std::set<std::string>{"batch eval relu"});
}

TEST_CASE("pleat-bench norm: half types, whose error is theirs", "[bench]") {
  const auto found = results({"norm", "--shape", "4,6,9", "--dtype", "bfloat16", "--check"});
  check_times(found);
  check_errors(found, 0.02);
}

TEST_CASE("pleat-bench unfold: one to three dimensions", "[bench]") {
  const auto found = results({"unfold", "--shape", "2,3,9", "2,3,7,6", "1,2,5,4,6", "--stride", "2",
                              "--dilation", "1", "--format", "contiguous,channels_last", "--check"});
  check_times(found);
  check_errors(found, 1e-6);
  CHECK(all_of(found, "problem") ==
        std::set<std::string>{"[2, 3, 9], unfold k3 s2 p1", "[2, 3, 9], fold k3 s2 p1",
                              "[2, 3, 7, 6], unfold k3 s2 p1", "[2, 3, 7, 6], fold k3 s2 p1",
                              "[1, 2, 5, 4, 6], unfold k3 s2 p1", "[1, 2, 5, 4, 6], fold k3 s2 p1"});
  // Images of 2 x 3 x 9 and 5 windows of 3 taps.
  CHECK(found[0]["values"]["bytes"] == 2 * 3 * (9 + 3 * 5) * 4);
}

TEST_CASE("pleat-bench elementwise: all functions are right", "[bench]") {
  const auto found =
      results({"elementwise", "--shape", "2,3,4,5", "--format", "contiguous,channels_last", "--check"});
  check_times(found);
  check_errors(found, 1e-6);
  CHECK(all_of(found, "function").size() >= 14);
  for (const auto& result : found) CHECK(result["values"]["elements"] == 120);
  const auto few = results({"elementwise", "--shape", "7", "--op", "add,add_bias"});
  CHECK(few.size() == 2);
  // Of the bias a number for each element of the last dimension.
  CHECK(few[0]["values"]["bytes"] == 3 * 7 * 4);
}

TEST_CASE("pleat-bench elementwise: every pointwise function of the table of op cases", "[bench]") {
  const auto found = results({"elementwise", "--shape", "3,7,50", "--op", "all", "--check"});
  check_times(found);
  check_errors(found, 1e-5);
  std::set<std::string> wanted{"copy", "relu_backward", "add_bias", "other_format"};
  for (const pleat::test::OpFamily& family : pleat::test::op_families())
    for (const pleat::test::OpCase& row : family.cases())
      if (row.elementwise) wanted.insert(row.name);
  CHECK(all_of(found, "function") == wanted);
  CHECK(found.size() == wanted.size());
  CHECK(wanted.contains("where"));  // of a condition and two numbers
  const auto bytes = [&](const std::string& function) {
    for (const auto& result : found)
      if (result["labels"]["function"] == function) return result["values"]["bytes"].get<int>();
    return 0;
  };
  CHECK(bytes("exp") == 2 * 1050 * 4);
  CHECK(bytes("add") == 3 * 1050 * 4);
  CHECK(bytes("add_bias") == (2 * 1050 + 7) * 4);
  CHECK(bytes("where") == 1050 + 3 * 1050 * 4);
  CHECK(bytes("isnan") == 1050 * 4 + 1050);
}

TEST_CASE("pleat-bench matmul: sizes, batches, operands that lie transposed", "[bench]") {
  for (const char* transpose : {"none", "a", "b", "both"}) {
    CAPTURE(transpose);
    const auto found = results({"matmul", "--size", "5,6,7", "9", "2,3,4,5", "--transpose", transpose,
                                "--check", "--dtype", "float64"});
    REQUIRE(found.size() == 3);
    check_errors(found, 1e-13);
    CHECK(found[0]["values"]["flops"] == 2 * 5 * 6 * 7);
    CHECK(found[0]["values"]["bytes"] == (5 * 7 + 7 * 6 + 5 * 6) * 8);
    CHECK(found[1]["values"]["flops"] == 2 * 9 * 9 * 9);
    CHECK(found[2]["values"]["flops"] == 2 * 2 * 3 * 4 * 5);
  }
}

TEST_CASE("pleat-bench step: parts and the whole, with right gradients", "[bench]") {
  const auto found =
      results({"step", "--model", "small", "--batch-size", "4", "--dtype", "float32,float64", "--check"});
  check_times(found);
  REQUIRE(found.size() == 12);
  CHECK(all_of(found, "part") ==
        std::set<std::string>{"data", "forward", "loss", "backward", "optimiser", "step"});
  double shares = 0;
  for (int i = 0; i < 5; ++i) shares += found[static_cast<std::size_t>(i)]["values"]["share"].get<double>();
  CHECK(shares == Approx(1));
  CHECK(found[5]["labels"]["part"] == "step");
  CHECK(found[5]["values"]["images_per_s"].get<double>() ==
        Approx(4 / found[5]["time"]["median"].get<double>()));
  CHECK(found[5]["values"]["error"] < 1e-4);
  CHECK(found[11]["values"]["error"] < 1e-10);
}

TEST_CASE("pleat-bench step: a named implementation, mixed precision, workers", "[bench]") {
  const auto found =
      results({"step", "--model", "small", "--batch-size", "2", "--implementation", "auto,unfold", "--dtype",
               "bfloat16", "--format", "channels_last", "--workers", "1", "--optimizer", "adam"});
  check_times(found);
  CHECK(all_of(found, "problem") ==
        std::set<std::string>{"small n2 adam bfloat16 channels_last workers 1",
                              "small n2 adam bfloat16 channels_last unfold workers 1"});
}

TEST_CASE("a training step goes through its data again and again", "[bench]") {
  pleat::bench::TrainingStep step({.model = "small", .batch_size = 4});
  for (int i = 0; i < 20; ++i) {  // more than an epoch of its data
    step.data();
    step.forward();
    step.loss();
    step.backward();
    step.optimize();
  }
  CHECK(step.num_parameters() == pleat::models::small_cnn({.num_classes = 10}).num_parameters());
  CHECK_THROWS_AS(pleat::bench::TrainingStep({.model = "lenet"}), pleat::ValueError);
}

TEST_CASE("pleat-bench ceilings", "[bench]") {
  const Outcome outcome = run({"ceilings"});
  CHECK(outcome.status == 0);
  CHECK(has(outcome.out, "FMA float32"));
  CHECK(has(outcome.out, "copy"));
}

TEST_CASE("pleat-bench draws what it measures", "[bench]") {
  const pleat_test::TemporaryDirectory folder;
  const auto drawn = [&](std::vector<std::string> arguments) {
    const std::string file = (folder / "picture.svg").string();
    arguments.insert(arguments.end(), {"--quick", "--seconds", "1e-4", "--plot", file});
    const Outcome outcome = run(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    const auto bytes = pleat_test::read_bytes(file);
    return std::string(bytes.begin(), bytes.end());
  };
  CHECK(has(drawn({"norm", "--shape", "2,4,8"}), "channels_last"));
  CHECK(has(drawn({"unfold", "--shape", "2,4,8"}), "[2, 4, 8], fold k3 p1"));
  CHECK(has(drawn({"matmul", "--size", "32"}), "GFLOP/s"));
  CHECK(has(drawn({"elementwise", "--shape", "64", "--op", "relu"}), "Elementwise functions: [64]"));
  CHECK(has(drawn({"elementwise", "--shape", "64", "128", "256", "--op", "relu"}), "polyline"));
  CHECK(has(drawn({"step", "--model", "small", "--batch-size", "2"}), "optimiser"));
  CHECK(has(drawn({"step", "--model", "small", "--batch-size", "2,4"}), "batch size"));
}

TEST_CASE("pleat-bench: options that make no sense are named before anything is measured", "[bench]") {
  const auto [arguments, message] = GENERATE(table<std::vector<std::string>, std::string>({
      {{"norm", "--shape", "5"}, "norm: --shape: must have at least 2 sizes, N,C, got \"5\""},
      {{"norm", "--shape", "2,-3"}, "norm: --shape: must be sizes of at least 1"},
      {{"norm", "--layer", "spectral"}, "--layer"},
      {{"norm", "--implementation", "fastest"}, "norm: --implementation: must be all or some of native"},
      {{"norm", "--dtype", "int64"}, "--dtype"},
      {{"unfold", "--shape", "2,3"}, "unfold: --shape: must have 3 to 5 sizes"},
      {{"unfold", "--shape", "1,1,2", "--kernel", "9"}, "a window of 9 must fit into 2 with padding 1"},
      {{"unfold", "--stride", "0"}, "--stride"},
      {{"elementwise", "--op", "fold"}, "elementwise: --op: must be some of all, copy, "},
      {{"elementwise", "--shape", "x"}, "elementwise: --shape: must be sizes of at least 1"},
      {{"matmul", "--size", "1,2"}, "matmul: --size: must have 1, 3 or 4 numbers, got \"1,2\""},
      {{"matmul", "--precision", "low"}, "--precision"},
      {{"step", "--model", "lenet"}, "--model"},
      {{"step", "--batch-size", "0"}, "--batch-size"},
      {{"step", "--implementation", "fastest"}, "step: --implementation: must be auto or one of"},
  }));
  CAPTURE(arguments);
  const Outcome outcome = run(arguments);
  CHECK(outcome.status == 2);
  CHECK(has(outcome.err, message));
}

TEST_CASE("pleat-bench: a problem that no memory holds ends with a message", "[bench]") {
  const Outcome outcome = run({"matmul", "--size", "999999999"});
  CHECK(outcome.status != 0);
  CHECK(has(outcome.err, "pleat-bench: "));
}
