// pleat-bench ask, through the program.
#include <fstream>
#include <regex>

#include <nlohmann/json.hpp>

#include "pleat/core/device/cuda.h"
#include "pleat/tests/bench/run.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using pleat::test::has;
using pleat::test::run_bench;

namespace {

/// With parts of what is printed: tables, sentences.
const std::vector<std::pair<std::string, std::vector<std::string>>> questions{
    {"batchnorm-after-unfold",
     {"3x3, padding 0, no bias", "batch 8, convolution  forward\n",
      "batch 32, batch norm in training  backward\n", "by hand: windows times filters (channels_last)",
      "asked for contiguous (contiguous)", "- batch 32, batch norm in evaluation, forward, beside direct",
      "- batch 8, convolution and batch norm in evaluation, forward, beside direct"}},
    {"unfold-speed",
     {"batch 8  forward, recorded\n", "conv2d, unfold", "the column matrix 1.",
      "- batch 2, backward, beside conv2d, direct: ", " % of the time of all pieces",
      "- batch 8, by hand, backward: "}},
    {"conv2d-vs-conv3d",
     {"conv3d, not reduced", "with 2 filters (3, 3)",
      "- unfold, gradient of the weight alone, backward, beside conv2d: ",
      "- direct, as in the question, forward, recorded, beside conv2d: "}},
    {"patches",
     {"40 patches of 4x4  forward\n", "40 patches of 8x8  backward\n", "one dense image", "a batch, tuned",
      "(1, 3, 3) conv3d", "a plain loop", "groups = N",
      "- 160 patches of 4x4, forward, beside a batch, direct: "}},
    {"faster-convolution",
     {"2-D float32  forward\n", "3-D bfloat16  forward\n", "first call", "error", "fast, one-hot filters",
      "- 3-D float16, fast, im2col, forward: ", "- 1-D float16, forward, beside convolution: ",
      " % of the time of all pieces", "Timing the first call alone would mislead most"}}};

}  // namespace

TEST_CASE("pleat-bench ask lists its questions", "[ask]") {
  const auto outcome = run_bench({"ask"});
  CHECK(outcome.status == 0);
  for (const auto& question : questions) CHECK(has(outcome.out, question.first));
}

TEST_CASE("pleat-bench ask says what there is when a question or a device is unknown", "[ask]") {
  const auto unknown = run_bench({"ask", "why"});
  CHECK(unknown.status == 2);
  CHECK(has(unknown.err,
            "ask: there are batchnorm-after-unfold, unfold-speed, conv2d-vs-conv3d, patches, "
            "faster-convolution, got \"why\""));
  CHECK(run_bench({"ask", "patches", "--device", "abacus"}).status == 2);
  if (!pleat::cuda::is_available()) CHECK(run_bench({"ask", "patches", "--device", "cuda"}).status == 2);
}

TEST_CASE("pleat-bench ask gives tables and a conclusion to each question", "[ask]") {
  const pleat_test::TemporaryDirectory folder;
  const auto& [name, parts] = questions[GENERATE(range(0, 5))];
  CAPTURE(name);
  const std::string json_path = (folder.path() / "answer.json").string();
  const std::string plot_path = (folder.path() / "answer.svg").string();
  const auto outcome =
      run_bench({"ask", name, "--quick", "--seconds", "0.001", "--json", json_path, "--plot", plot_path});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK(has(outcome.out, name));
  CHECK(has(outcome.out, "\nConclusion"));
  CHECK(has(outcome.out, "\nWhy (counted by the profiler in one run of the slowest and of the fastest)\n- "));
  // Sentences are broken wherever a line ends.
  const std::string text = std::regex_replace(outcome.out, std::regex("\n  (?! )"), " ");
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK((has(outcome.out, part) || has(text, part)));
  }
  if (!pleat::cuda::is_available()) CHECK(has(outcome.out, "The part on CUDA is left out: "));

  std::ifstream json_file(json_path);
  const auto results = nlohmann::json::parse(json_file).at("results");
  std::size_t sentences = 0;
  for (const auto& record : results)
    if (record.contains("time"))
      CHECK(record.at("time").at("median").get<double>() > 0);
    else
      sentences += record.at("details").size();
  CHECK(sentences >= 4);
  CHECK(results.size() > 6);

  std::ifstream plot_file(plot_path);
  const std::string svg{std::istreambuf_iterator<char>(plot_file), {}};
  CHECK(has(svg, "<svg"));
  CHECK(has(svg, "</svg>"));
  CHECK_FALSE(has(svg, "nan"));
}
