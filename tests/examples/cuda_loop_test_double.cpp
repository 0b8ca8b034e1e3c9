// What the loop of train_cifar asks of a GPU.
#include <cstdint>
#include <string>
#include <vector>

#include "pleat/data/synthetic_shapes.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/examples/run_example.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat_test;

namespace {

struct Asked {
  int64_t launches, synchronisations, blocking_copies;
};

/// One epoch of so many steps, with 8 test images.
Asked asked_in(int64_t steps, const std::vector<std::string>& more) {
  const TemporaryDirectory directory;
  constexpr int64_t batch = 4;
  pleat::data::write_synthetic_shapes(directory / "set", {.train = steps * batch, .test = 8});
  std::vector<std::string> arguments = {"--data",
                                        (directory / "set").string(),
                                        "--output",
                                        (directory / "out").string(),
                                        "--device",
                                        "cuda",
                                        "--epochs",
                                        "1",
                                        "--no-report",
                                        "--batch-size",
                                        std::to_string(batch)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ExampleOutcome outcome =
      run_example("train_cifar", arguments, {.environment = {"PLEAT_DOUBLE_COUNTS=1"}});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const auto number = [&](const std::string& name) {
    const std::size_t at = outcome.err.find(name + " ");
    REQUIRE(at != std::string::npos);
    return std::stoll(outcome.err.substr(at + name.size() + 1));
  };
  return {number("cuda double: launches"), number("synchronisations"), number("blocking_copies")};
}

}  // namespace

TEST_CASE("cuda: the loop of train_cifar waits for the GPU nowhere", "[examples][cuda]") {
  const std::vector<std::string> more = GENERATE(
      std::vector<std::string>{"--optimizer", "sgd", "--augment", "crop,flip", "--workers", "2"},
      std::vector<std::string>{"--amp", "bfloat16", "--augment", "mixup"},
      std::vector<std::string>{"--amp", "float16", "--optimizer", "adamw"},
      std::vector<std::string>{"--cuda-graph"}, std::vector<std::string>{"--cuda-graph", "--amp", "float16"});
  CAPTURE(more);
  const Asked few = asked_in(3, more);
  const Asked many = asked_in(7, more);
  // The end of an epoch waits once, unless the last loss has come already.
  CHECK(many.synchronisations <= few.synchronisations + 1);
  CHECK(many.blocking_copies == few.blocking_copies);
  CHECK(many.launches > few.launches);
}
