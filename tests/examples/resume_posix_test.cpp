// POSIX: no process of Windows stops another by a signal
// Runs of train_cifar that are stopped and go on, and what else it does with a trained network.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include <sys/wait.h>

#include "pleat/data/image.h"
#include "pleat/data/synthetic_shapes.h"
#include "pleat/io/safetensors.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/examples/training.h"

using namespace pleat_test;
namespace fs = std::filesystem;

namespace {

/// How train_cifar is told to train with everything that has a state.
std::vector<std::string> training(const fs::path& set, const fs::path& output) {
  return {"--data",       set.string(), "--output",    output.string(),
          "--device",     "cpu",        "--epochs",    "6",
          "--batch-size", "16",         "--optimizer", "adamw",
          "--schedule",   "one-cycle",  "--augment",   "crop,flip,mixup",
          "--workers",    "2",          "--ema",       "0.9",
          "--amp",        "float16",    "--threads",   "1"};
}

}  // namespace

TEST_CASE("a run that signals stop at any moment gives what a run gives that was never stopped",
          "[examples][programs]") {
  const TemporaryDirectory folder;
  pleat::data::write_synthetic_shapes(folder / "set", {.train = 400, .test = 40});
  REQUIRE(run_example("train_cifar", training(folder / "set", folder / "whole")).status == 0);
  std::mt19937 random(7);
  const fs::path stopped = folder / "stopped";
  std::vector<std::string> arguments = training(folder / "set", stopped);
  int stops = 0;
  for (int turn = 0; turn < 100; ++turn) {
    const int signal = turn % 3 == 0 ? SIGTERM : turn % 3 == 1 ? SIGINT : SIGKILL;
    const pid_t child = start_example("train_cifar", arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + random() % 300));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    // It may have been too early for the first checkpoint.
    const bool told = WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal;
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == signal;
    REQUIRE((told || killed));
    stops += told ? 1 : 0;
    if (fs::exists(stopped / "checkpoints")) arguments = {"--resume", stopped.string()};
  }
  CHECK(stops > 0);
  const ExampleOutcome last = run_example("train_cifar", {"--resume", stopped.string()});
  CHECK(last.status == 0);
  CHECK(figures_of(stopped) == figures_of(folder / "whole"));
  CHECK(read_text(stopped / "weights.safetensors") == read_text(folder / "whole" / "weights.safetensors"));
}
