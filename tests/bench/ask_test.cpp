#include <fstream>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include "pleat/bench/program.h"
#include "pleat/core/device/cuda.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using pleat_test::TemporaryDirectory;

namespace {

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(std::vector<std::string> arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int status = pleat::bench::run_program(arguments, out, err);
  return {status, out.str(), err.str()};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// With parts of what is printed: tables, notes, sentences.
const std::vector<std::pair<std::string, std::vector<std::string>>> questions{
    {"batchnorm-after-unfold",
     {"3x3, padding 0, no bias", "batch 8, convolution  forward\n",
      "batch 32, batch norm in training  backward\n", "by hand: windows times filters (channels_last)",
      "asked for contiguous (contiguous)",
      "batch 8, batch norm in evaluation: forward alone, kernel time in the network\n",
      "Ten forward passes in evaluation, batch 32, by hand: filters times columns (contiguous)\n",
      "- batch 32, batch norm in evaluation, forward, beside direct",
      "- batch 32, batch norm inside the network in evaluation, kernel time, beside direct"}},
    {"unfold-speed",
     {"batch 8  training\n", "conv2d, unfold", "the column matrix 1.",
      "batch 8, by hand: pieces, timed by hooks\n", "forward, recorded",
      "- batch 2, training, beside conv2d, direct: ", " % of the time of all pieces",
      "- batch 8, training, beside unfold, product, fold by hand: unfold, product by hand, in parts "}},
    {"conv2d-vs-conv3d",
     {"timed carelessly  no warm-up, conv2d first\n", "conv3d, not reduced",
      "timed carelessly  host clock, not waiting for the device\n", "with 2 filters (3, 3)",
      "- timed carelessly, the backward pass of conv3d seems to take ",
      "- unfold, gradient of the weight alone, backward, beside conv2d: ",
      "- direct, as in the question, forward, sum, backward(), beside conv2d: ",
      "conv2d and conv3d give the same results, bit for bit."}},
    {"patches",
     {"40 patches of 4x4  forward\n", "40 patches of 8x8  backward\n", "one dense image", "a batch, tuned",
      "(1, 3, 3) conv3d", "a plain loop", "groups = N",
      "- 160 patches of 4x4, for a million results, beside a batch, direct: ",
      "- unfold and product, for a million results, beside 40 patches of 4x4: "}},
    {"faster-convolution",
     {"2-D float32  forward\n", "3-D bfloat16  forward\n", "first call", "error", "fast, one-hot filters",
      "3-D float16, forward: the whole and its pieces\n", "unfold    einsum      fold      bias       sum\n",
      "- 1-D float16, forward, beside convolution: ", " % of the time of all pieces",
      "misled most by", "All ways agree with"}}};

}  // namespace

TEST_CASE("pleat-bench ask lists its questions", "[ask]") {
  const Outcome outcome = run({"ask"});
  CHECK(outcome.status == 0);
  for (const auto& question : questions) CHECK(has(outcome.out, question.first));
}

TEST_CASE("pleat-bench ask says what there is when a question or a device is unknown", "[ask]") {
  const Outcome unknown = run({"ask", "why"});
  CHECK(unknown.status == 2);
  CHECK(has(unknown.err,
            "ask: there is no question \"why\"; there are batchnorm-after-unfold, unfold-speed, "
            "conv2d-vs-conv3d, patches, faster-convolution"));
  CHECK(run({"ask", "patches", "--device", "abacus"}).status == 2);
  if (!pleat::cuda::is_available()) CHECK(run({"ask", "patches", "--device", "cuda"}).status == 2);
}

TEST_CASE("pleat-bench ask gives a table, a picture and a conclusion to each question", "[ask]") {
  const TemporaryDirectory folder;
  const auto& [name, parts] = questions[GENERATE(range(0, 5))];
  CAPTURE(name);
  const std::string json_path = (folder.path() / "answer.json").string();
  const std::string plot_path = (folder.path() / "answer.svg").string();
  const Outcome outcome =
      run({"ask", name, "--quick", "--seconds", "0.001", "--json", json_path, "--plot", plot_path});
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
  const auto results = nlohmann::json::parse(json_file);
  std::size_t conclusions = 0;
  for (const auto& record : results.at("results")) {
    CHECK(record.at("labels").at("question") == name);
    if (record.at("labels").at("what") == "conclusion") {
      ++conclusions;
      CHECK(record.at("details").size() >= 3);
    } else {
      CHECK(record.at("time").at("median").get<double>() > 0);
    }
  }
  CHECK(conclusions >= 1);
  CHECK(results.at("results").size() > 6);

  std::ifstream plot_file(plot_path);
  const std::string svg{std::istreambuf_iterator<char>(plot_file), {}};
  CHECK(has(svg, "<svg"));
  CHECK(has(svg, "</svg>"));
  CHECK_FALSE(has(svg, "nan"));
}
