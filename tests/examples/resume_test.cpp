// Runs of train_cifar that are stopped and go on, and what else it does with a trained network.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "pleat/data/image.h"
#include "pleat/data/synthetic_shapes.h"
#include "pleat/io/safetensors.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/examples/training.h"

using namespace pleat_test;
namespace fs = std::filesystem;

namespace {

/// Pictures of two classes, grey and bright, of several sizes.
void draw_pictures(const fs::path& folder) {
  for (const bool bright : {false, true}) {
    const fs::path place = folder / (bright ? "bright" : "dark");
    fs::create_directories(place);
    for (int i = 0; i < 20; ++i)
      pleat::data::write_png(place / (std::to_string(i) + ".png"),
                             pleat::full({3, 20 + i, 30}, bright ? 200 + i : 10 + i, pleat::uint8));
  }
}

}  // namespace

TEST_CASE("a run goes on for more epochs where its schedule has no length", "[examples][programs]") {
  const TemporaryDirectory folder;
  pleat::data::write_synthetic_shapes(folder / "set", {.train = 64, .test = 20});
  const auto train = [&](const std::string& schedule, const std::string& output,
                         std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--data",       (folder / "set").string(),
                                          "--output",     (folder / output).string(),
                                          "--device",     "cpu",
                                          "--schedule",   schedule,
                                          "--batch-size", "16",
                                          "--no-report"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_example("train_cifar", arguments);
  };
  const auto resume = [&](const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(), {"--resume", (folder / run).string()});
    return run_example("train_cifar", more);
  };
  const auto rates = [&](const std::string& run) {
    return pleat::io::read_csv(folder / run / "metrics.csv").column("learning_rate").to_vector<double>();
  };
  REQUIRE(train("constant", "constant", {"--epochs", "1", "--lr", "0.01"}).status == 0);
  REQUIRE(resume("constant", {"--epochs", "3", "--lr", "0.010"}).status == 0);
  CHECK(rates("constant") == std::vector<double>(3, 0.01));
  REQUIRE(train("constant", "whole", {"--epochs", "3", "--lr", "0.01"}).status == 0);
  CHECK(figures_of(folder / "constant") == figures_of(folder / "whole"));
  // Its milestones stay where they were, however often it goes on.
  REQUIRE(train("step", "step", {"--epochs", "4", "--lr", "0.01"}).status == 0);
  REQUIRE(resume("step", {"--epochs", "5"}).status == 0);
  REQUIRE(resume("step", {"--epochs", "6"}).status == 0);
  const std::vector<double> expected = {0.01, 0.01, 1e-3, 1e-4, 1e-4, 1e-4};
  REQUIRE(rates("step").size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(rates("step")[i] == Approx(expected[i]));
  CHECK(has(resume("step", {"--schedule-epochs", "6"}).err, "--schedule-epochs 6 where the run has 4"));
  for (const std::string schedule : {"cosine", "one-cycle"}) {
    REQUIRE(train(schedule, schedule, {"--epochs", "2"}).status == 0);
    const std::string before = read_text(folder / schedule / "metrics.csv");
    const std::string run = (folder / schedule).string();
    const ExampleOutcome refused = resume(schedule, {"--epochs", "3"});
    CHECK(refused.status == 2);
    CHECK(has(refused.err, "--resume " + run +
                               ": --epochs 3 where the run has 2 would change its learning rate "
                               "(--schedule " +
                               schedule + "); begin a new run with its weights: --start-from " + run +
                               "/weights.safetensors"));
    for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
             {"--lr", "0.5"}, {"--schedule", "constant"}, {"--accumulate", "2"}})
      CHECK(has(resume(schedule, {option, value}).err, option + ' ' + value + " where the run has "));
    CHECK(read_text(folder / schedule / "metrics.csv") == before);
    CHECK(resume(schedule, {"--epochs", "2"}).status == 0);  // it is done already
  }
}

TEST_CASE("train_cifar trains on a folder of pictures, tests and classifies", "[examples][programs]") {
  const TemporaryDirectory folder;
  draw_pictures(folder / "pictures");
  const std::string output = (folder / "run").string();
  const ExampleOutcome trained = run_example(
      "train_cifar", {"--data", (folder / "pictures").string(), "--output", output, "--image-size", "16",
                      "--epochs", "6", "--batch-size", "8", "--device", "cpu", "--lr", "0.01"});
  REQUIRE(trained.status == 0);
  CHECK(has(trained.out, "32 training and 8 test images"));

  const std::string bright = (folder / "pictures" / "bright" / "3.png").string();
  const ExampleOutcome seen = run_example("train_cifar", {"--output", output, "--predict", bright});
  CHECK(seen.status == 0);
  CHECK(has(seen.out, bright + ": bright "));
  const ExampleOutcome twice = run_example("train_cifar", {"--output", output, "--predict", bright, "--tta"});
  CHECK(twice.status == 0);
  CHECK(has(twice.out, bright + ": bright "));
  const std::string onnx = (folder / "net.onnx").string();
  const ExampleOutcome exported = run_example("train_cifar", {"--output", output, "--export-onnx", onnx});
  CHECK(exported.status == 0);
  CHECK(has(exported.out, "small is written to " + onnx));
  CHECK(std::filesystem::file_size(onnx) > 100'000);
  CHECK_FALSE(has(read_text(onnx), "0.net."));
  // With --tta the network is a member of the one that is written.
  REQUIRE(run_example("train_cifar", {"--output", output, "--export-onnx", onnx, "--tta"}).status == 0);
  CHECK(has(read_text(onnx), "0.net."));
  const ExampleOutcome tested = run_example("train_cifar", {"--data", (folder / "pictures").string(),
                                                            "--evaluate", output + "/weights.safetensors"});
  CHECK(tested.status == 0);
  CHECK(has(tested.out, "of 8 images\nbright "));
  CHECK(has(tested.out, "\ndark   "));

  const ExampleOutcome tuned = run_example(
      "train_cifar", {"--config", output + "/options.toml", "--output", (folder / "tuned").string(),
                      "--start-from", output + "/weights.safetensors", "--epochs", "1"});
  CHECK(tuned.status == 0);
  CHECK(has(tuned.out, "copied       20\n"));
  CHECK(has(tuned.out, "    1  "));
  CHECK_FALSE(has(tuned.out, "    2  "));
  // A network from outside, with other classes.
  pleat::nn::Sequential outside = pleat::models::small_cnn({.num_classes = 7, .image_size = 16});
  const std::string network = (folder / "outside.onnx").string();
  pleat::onnx::export_onnx(network, outside, pleat::randn({1, 3, 16, 16}));
  const std::string from = (folder / "from").string();
  const ExampleOutcome on = run_example(
      "train_cifar", {"--data", (folder / "pictures").string(), "--output", from, "--image-size", "16",
                      "--epochs", "1", "--batch-size", "8", "--device", "cpu", "--from", network});
  CHECK(on.status == 0);
  CHECK(run_example("train_cifar", {"--output", from, "--predict", bright}).status == 0);
  const ExampleOutcome rates = run_example("train_cifar", {"--config", output + "/options.toml", "--output",
                                                           (folder / "rates").string(), "--find-lr"});
  CHECK(rates.status == 0);
  CHECK(has(read_text(folder / "rates" / "learning_rates.svg"), "<svg"));
}

TEST_CASE("what train_cifar cannot go on with, test or classify", "[examples][programs]") {
  const TemporaryDirectory folder;
  pleat::io::write_safetensors(folder / "weights.safetensors", {{"w", pleat::zeros({2})}});
  const std::string weights = (folder / "weights.safetensors").string();
  write_bytes(folder / "options.toml", std::string_view("colour = \"red\"\n"));
  write_bytes(folder / "numbers.toml", std::string_view("epochs = \"two\"\n"));
  struct Mistake {
    std::vector<std::string> arguments;
    int status;
    std::string message;
  };
  for (const auto& [arguments, status, message] : std::vector<Mistake>{
           {{"--resume", folder.path().string()}, 2, "there is no checkpoint in this folder"},
           {{"--resume", (folder / "none").string()}, 2, "--resume: Directory does not exist"},
           {{"--evaluate", weights, "--data", folder.path().string()}, 1, "has no entry \"class_names\""},
           {{"--predict", weights, "--output", folder.path().string()}, 1, "has no entry \"class_names\""},
           {{"--predict", weights, "--output", (folder / "none").string()}, 2, "there is no "},
           {{"--start-from", weights, "--output", (folder / "new").string(), "--data",
             folder.path().string()},
            1,
            "must hold a folder for each class"},
           {{"--config", (folder / "options.toml").string()}, 2, "colour"},
           {{"--config", (folder / "numbers.toml").string()}, 2, "--epochs: must be a whole number"},
           {{"--config", (folder / "none.toml").string()}, 2, "was not readable"},
           {{"--evaluate", weights, "--predict", weights}, 2, "--evaluate excludes --predict"},
           {{"--resume", folder.path().string(), "--find-lr"}, 2, "excludes"},
           {{"--schedule-epochs", "2"}, 2, "--schedule-epochs is for --schedule step"},
           {{"--tta"}, 2, "--tta is for --evaluate, --predict and --export-onnx"},
           {{"--patience", "0"}, 2, "--patience: must be a whole number from 1"},
           {{"--ema", "1"}, 2, "--ema: must be a number from 0 to below 1"},
       }) {
    CAPTURE(arguments);
    const ExampleOutcome outcome = run_example("train_cifar", arguments);
    CHECK(outcome.status == status);
    CHECK(has(outcome.err, message));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}
