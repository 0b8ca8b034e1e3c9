// POSIX: Windows has no pipes and devices in folders, pseudo-terminals of this kind or signals of others
// The programs of examples/, as a user runs them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/core/base/text_table.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/examples/training.h"

using namespace pleat_test;
namespace fs = std::filesystem;

TEST_CASE("output that goes nowhere ends train_cifar at once", "[examples][programs]") {
  const Training training;
  const ExampleOutcome full = training.run({"--epochs", "100000"}, {.stdout_to = "/dev/full"});
  CHECK(full.status == 1);
  CHECK(has(full.err, "cannot write to standard output: No space left on device"));
  const fs::path pipe = training / "output";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::jthread reader([&] { ::close(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC)); });  // nothing of it
  const ExampleOutcome left = training.run({"--epochs", "100000"}, {.stdout_to = pipe.string()});
  CHECK(left.status == 1);
  CHECK(has(left.err, "cannot write to standard output: Broken pipe"));
  const ExampleOutcome closed = training.run({"--epochs", "100000"}, {.stdout_to = "-"});
  CHECK(closed.status == 1);
  CHECK(has(closed.err, "standard output is closed"));
  // No result has got the number of the closed stream, and its text with it.
  CHECK_FALSE(fs::exists(training.output() / "metrics.csv"));

  fs::create_directories(training.output() / "weights.safetensors");
  const ExampleOutcome folder = training.run({"--epochs", "100000"});
  CHECK(folder.status == 1);
  CHECK(has(folder.err, "is a folder"));
  CHECK(folder.out.empty());
}

TEST_CASE("option --profile replaces no device and waits for no reader", "[examples][programs]") {
  const Training training;
  const std::vector<std::string> steps{"--epochs", "2", "--profile"};
  const auto profile_into = [&](const std::string& file) {
    std::vector<std::string> arguments = steps;
    arguments.push_back(file);
    return training.run(arguments);
  };
  CHECK(profile_into("/dev/null").status == 0);
  CHECK(fs::is_character_file("/dev/null"));
  REQUIRE(::mkfifo((training / "pipe").c_str(), 0600) == 0);
  const ExampleOutcome pipe = profile_into((training / "pipe").string());
  CHECK(pipe.status == 1);
  CHECK(has(pipe.err, "is a pipe that nobody reads from"));
  CHECK(fs::is_fifo(training / "pipe"));
  const ExampleOutcome folder = profile_into((training / "set").string());
  CHECK(folder.status == 1);
  CHECK(folder.out.empty());  // at the start
  CHECK(profile_into((training / "trace.json").string()).status == 0);
  CHECK(has(read_text(training / "trace.json"), "traceEvents"));
}

TEST_CASE("what --help prints fits the terminal, and needs somewhere to go", "[examples][programs]") {
  for (const std::string program :
       {"train_cifar", "mnist", "voxels", "make_shapes", "tune_conv", "custom_op", "csv_regression", "dcgan",
        "denoising_autoencoder", "fine_tuning", "lstm_adding", "serve", "unet_segmentation", "wavenet"}) {
    CAPTURE(program);
    const ExampleOutcome help =
        run_example(program, {"--help"}, {.columns = 66, .environment = {"COLUMNS=", "TERM=xterm"}});
    CHECK(help.status == 0);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);)
      CHECK(pleat::display_width(line.substr(0, line.find('\r'))) < 66);
    for (const std::string nowhere : {"/dev/full", "-"}) {
      const ExampleOutcome outcome = run_example(program, {"--help"}, {.stdout_to = nowhere});
      CHECK(outcome.status == 1);
      CHECK(has(outcome.err, "standard output"));
    }
  }
}

TEST_CASE("nothing is wider than its terminal", "[examples][programs]") {
  const Training training;
  const auto [columns, later] = GENERATE(table<int, int>({{20, 0}, {60, 0}, {83, 0}, {300, 0}, {300, 30}}));
  CAPTURE(columns, later);
  const ExampleOutcome outcome = training.run(
      {"--batch-size", "4"}, {.columns = columns, .later_columns = later, .environment = {"TERM=xterm"}});
  REQUIRE(outcome.status == 0);
  const std::string code = "\x1b[K";
  CHECK(has(outcome.out, "\r" + code + "epoch 1/1"));
  std::string line;
  std::size_t widest_bar = 0, last_bar = 0;
  for (std::size_t at = 0; at < outcome.out.size(); ++at) {
    const char c = outcome.out[at];
    if (outcome.out.compare(at, code.size(), code) == 0) {
      at += code.size() - 1;
    } else if (c != '\r' && c != '\n') {
      line += c;
    } else {
      CAPTURE(line);
      // Words are not broken, and the name of the folder is one.
      if (!has(line, training.output().string())) CHECK(line.size() < static_cast<std::size_t>(columns));
      if (has(line, "epoch 1/1")) widest_bar = std::max(widest_bar, last_bar = line.size());
      line.clear();
    }
  }
  CHECK(widest_bar > 10);
  if (later > 0) CHECK(last_bar < static_cast<std::size_t>(later));
}

TEST_CASE("two runs into one folder are noticed, and a killed one leaves no trace", "[examples][programs]") {
  const Training training;
  const pid_t other = start_example("train_cifar", training.arguments({"--epochs", "100000"}));
  for (int i = 0; i < 600 && !fs::exists(training.output() / "weights.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const ExampleOutcome second = training.run();
  CHECK(second.status == 1);
  CHECK(has(second.err, "another run writes into"));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  // What a run leaves that was killed while it saved.
  write_bytes(training.output() / "weights.safetensors.pleat-4711-0.tmp", "half");
  CHECK(training.run().status == 0);
  for (const std::string& name : training.results()) {
    CAPTURE(name);
    CHECK_FALSE(has(name, ".tmp"));
    CHECK_FALSE(has(name, "lock"));
  }
}
