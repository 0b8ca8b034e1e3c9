#include <fstream>
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

const std::vector<std::string> names{"batchnorm-after-unfold", "unfold-speed", "conv2d-vs-conv3d", "patches",
                                     "faster-convolution"};

}  // namespace

TEST_CASE("pleat-bench ask lists its questions", "[ask]") {
  const Outcome outcome = run({"ask"});
  CHECK(outcome.status == 0);
  for (const std::string& name : names) CHECK(has(outcome.out, name));
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
  const std::string name = GENERATE(from_range(names));
  CAPTURE(name);
  const std::string json_path = (folder.path() / "answer.json").string();
  const std::string plot_path = (folder.path() / "answer.svg").string();
  const Outcome outcome =
      run({"ask", name, "--quick", "--seconds", "0.001", "--json", json_path, "--plot", plot_path});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK(has(outcome.out, name));
  CHECK(has(outcome.out, "Conclusion\n- "));
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
