// The programs of examples/, as a user runs them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pleat/core/base/text_table.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/examples/training.h"

using namespace pleat_test;
namespace fs = std::filesystem;

TEST_CASE("train_cifar leaves its results, and keeps those of an earlier run", "[examples][programs]") {
  const Training training;
  const ExampleOutcome first = training.run();
  CHECK(first.status == 0);
  CHECK(first.err.empty());
  CHECK(has(first.out, "epoch  train loss"));
  CHECK(has(first.out, "test accuracy "));
  CHECK_FALSE(has(first.out, "\x1b"));  // no control codes in a file
  CHECK_FALSE(has(first.out, "\r"));
  CHECK(training.results() == std::vector<std::string>{"checkpoints", "learning_curves.svg", "metrics.csv",
                                                       "options.toml", "report.html", "tensorboard",
                                                       "weights.safetensors"});
  const std::string weights = read_text(training.output() / "weights.safetensors");
  const ExampleOutcome second = training.run({"--seed", "2"});
  CHECK(second.status == 0);
  CHECK(has(second.out, "holds an earlier run; it will be kept as metrics.1.csv"));
  CHECK(training.results().size() == 14);
  CHECK(read_text(training.output() / "weights.1.safetensors") == weights);
  CHECK(read_text(training.output() / "weights.safetensors") != weights);
}

TEST_CASE("a loss that is not finite ends train_cifar with status 3, and the weights stay",
          "[examples][programs]") {
  const Training training;
  REQUIRE(training.run().status == 0);
  const std::string weights = read_text(training.output() / "weights.safetensors");
  const ExampleOutcome outcome = training.run({"--optimizer", "sgd", "--lr", "1e30"});
  CHECK(outcome.status == 3);
  CHECK(has(outcome.err, "train_cifar: the loss is nan in epoch 1, step 2, with learning rate "));
  CHECK(has(outcome.err, "; first "));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK_FALSE(has(outcome.out, "nan"));
  CHECK(read_text(training.output() / "weights.safetensors") == weights);
  CHECK(training.results().size() == 7);
}

TEST_CASE("options that make no sense end train_cifar with status 2 before it writes anything",
          "[examples][programs]") {
  const Training training;
  const auto [option, value, message] = GENERATE(table<std::string, std::string, std::string>({
      {"--seed", "99999999999999999999", "--seed: must be a whole number from 0 to 18446744073709551615"},
      {"--seed", "-1", "--seed: must be"},
      {"--augment", "none,flip", "--augment: none stands alone"},
      {"--augment", "flip,", "--augment: must be some of none, crop"},
      {"--data", "", "--data: must not be empty"},
      {"--output", "", "--output: must not be empty"},
      {"--profile", "", "--profile: must not be empty"},
      {"--device", "", "--device: must not be empty"},
      {"--device", "gpu", "--device: must be auto, cpu, cuda or cuda:N, got \"gpu\""},
      {"--device", "cuda:99", "--device: there is no cuda:99"},
      {"--conv-implementation", "", "--conv-implementation: must not be empty"},
      {"--conv-implementation", "fast", "--conv-implementation: on cpu there are direct"},
      {"--threads", "20000", "--threads: must be a whole number from 1 to "},
      {"--workers", "100000", "--workers: must be a whole number from 0 to 1024"},
      {"--epochs", "0", "--epochs: must be a whole number from 1 to 1000000"},
      {"--epochs", "-1", "--epochs: must be"},
      {"--epochs", "99999999999999999999", "--epochs: must be"},
      {"--lr", "nan", "--lr: must be a number above 0"},
      {"--lr", "inf", "--lr: must be"},
      {"--lr", "-1", "--lr: must be"},
      {"--lr", "0", "--lr: must be"},
      {"--weight-decay", "nan", "--weight-decay: must be"},
      {"--label-smoothing", "nan", "--label-smoothing: must be"},
      {"--momentum", "9", "--momentum: must be a number from 0 to below 1"},
      {"--momentum", "0.5", "--momentum is for sgd and rmsprop, it has no effect on --optimizer adam"},
      {"--batch-size", "0", "--batch-size: must be"},
      {"--batch-size", "121", "--batch-size 121: there are 120 training images"},
      {"--profile", "trace.json", "--profile needs 6 steps"},
      {"--model", "big", "--model: "},
      {"--colour", "red", "--colour"},
  }));
  CAPTURE(option, value);
  const ExampleOutcome outcome = training.run({option, value});
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(has(outcome.err, "train_cifar: "));
  CHECK(has(outcome.err, message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK_FALSE(fs::exists(training.output()));
}

namespace {

/// Columns of the widest line.
std::size_t width_of(const std::string& text) {
  std::istringstream lines(text);
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();  // of a terminal
    width = std::max(width, pleat::display_width(line));
  }
  return width;
}

}  // namespace

TEST_CASE("what --help prints fits 80 columns, or those that COLUMNS names", "[examples][programs]") {
  std::vector<std::vector<std::string>> commands{{"train_cifar"},
                                                 {"mnist"},
                                                 {"voxels"},
                                                 {"make_shapes"},
                                                 {"tune_conv"},
                                                 {"dcgan"},
                                                 {"custom_op"},
                                                 {"csv_regression"},
                                                 {"fine_tuning"},
                                                 {"wavenet"},
                                                 {"lstm_adding"},
                                                 {"denoising_autoencoder"},
                                                 {"char_transformer"},
                                                 {"unet_segmentation"},
                                                 {"serve"},
                                                 {"pleat-bench"}};
  for (const char* subcommand : {"conv", "ops", "step", "list", "ask"})
    commands.push_back({"pleat-bench", subcommand});
  for (std::vector<std::string> arguments : commands) {
    const std::string program = arguments[0];
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
    CAPTURE(program, arguments[0]);
    const auto width = [&](const ExampleOptions& options) {
      const ExampleOutcome help = run_example(program, arguments, options);
      CHECK(help.status == 0);
      CHECK(has(help.out, "Exit status: "));
      return width_of(help.out);
    };
    CHECK(width({.environment = {"COLUMNS="}}) <= 80);
    CHECK(width({.environment = {"COLUMNS=64"}}) <= 64);
  }
  // Where there is room, it is used.
  CHECK(width_of(run_example("train_cifar", {"--help"}, {.environment = {"COLUMNS=130"}}).out) > 110);
}

TEST_CASE("tables of pleat-bench fit 80 columns, and what is left out is named", "[programs]") {
  const std::vector<std::string> arguments{"conv",    "--shape",   "n1 c4 k4 hw8 r3 s1 p1",
                                           "--quick", "--seconds", "1e-6"};
  const ExampleOutcome narrow = run_example("pleat-bench", arguments, {.environment = {"COLUMNS="}});
  CHECK(narrow.status == 0);
  CHECK(width_of(narrow.out) <= 80);
  CHECK(has(narrow.out, "median"));
  CHECK(has(narrow.out, "No room for: "));
  const ExampleOutcome wide = run_example("pleat-bench", arguments, {.environment = {"COLUMNS=300"}});
  CHECK(has(wide.out, "first call"));
  CHECK_FALSE(has(wide.out, "No room for: "));
  CHECK(width_of(run_example("pleat-bench", {"list"}, {.environment = {"COLUMNS="}}).out) <= 80);
}

TEST_CASE("all programs have the same exit statuses", "[examples][programs]") {
  for (const std::string program :
       {"train_cifar", "mnist", "voxels", "make_shapes", "tune_conv", "custom_op", "csv_regression", "dcgan",
        "denoising_autoencoder", "fine_tuning", "lstm_adding", "serve", "unet_segmentation", "wavenet"}) {
    CAPTURE(program);
    const ExampleOutcome help = run_example(program, {"--help"});
    CHECK(help.status == 0);
    CHECK(has(help.out, "Exit status: 0 fine, 1 "));
    CHECK(help.err.empty());
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--no-such-option"}, {"stray"}}) {
      const ExampleOutcome outcome = run_example(program, wrong);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(has(outcome.err, program + ": "));
      CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    }
  }
  for (const auto& [program, arguments] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"mnist", {}},
           {"mnist", {"--data", ""}},
           {"mnist", {"--data", "/no/such/folder"}},
           {"mnist", {"--data", fs::temp_directory_path().string(), "--epochs", "0"}},
           {"voxels", {"--data", ""}},
           {"voxels", {"--lr", "nan"}},
           {"voxels", {"--size", "7"}},
           {"voxels", {"--threads", "0"}},
           {"voxels", {"--seed", "18446744073709551616"}},
           {"voxels", {"--size", "8", "--batch-size", "100000"}},
           {"make_shapes", {}},
           {"make_shapes", {"--seed", "3"}},
           {"make_shapes", {"--train", "5", "--preview", "x.png"}},
           {"make_shapes", {"--output", ""}},
           {"make_shapes", {"--output", "x", "--train", "10000001"}},
           {"dcgan", {"--output", ""}},
           {"wavenet", {"--steps", "0"}},
           {"serve", {"--model", "none"}},
           {"serve", {"--max-batch", "0"}},
           {"serve", {"--requests", "3", "--clients", "4"}},
           {"csv_regression", {"--data", "/no/such/file"}},
           {"tune_conv", {"--output", ""}}}) {
    CAPTURE(program, arguments);
    const ExampleOutcome outcome = run_example(program, arguments);
    CHECK(outcome.status == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

TEST_CASE("serve answers all requests, one by one and in batches", "[examples][programs]") {
  for (const char* batch : {"1", "8"}) {
    const ExampleOutcome outcome = run_example("serve", {"--model", "small", "--requests", "200", "--clients",
                                                         "5", "--max-batch", batch, "--queue", "3"});
    CHECK(outcome.status == 0);
    CHECK(has(outcome.out, "small, 200 requests of 5 threads: "));
    CHECK(has(outcome.out, "latency: median "));
    CHECK(has(outcome.out, "1.0 in a batch") == (std::string(batch) == "1"));
  }
}

TEST_CASE("option --profile does not take the place of the run's own results", "[examples][programs]") {
  const Training training;
  const ExampleOutcome outcome = training.run(
      {"--epochs", "2", "--profile", (training.output() / "." / "weights.safetensors").string()});
  CHECK(outcome.status == 2);
  CHECK(has(outcome.err, "is where the run leaves its weights.safetensors"));
}
