// POSIX: Windows has no limit on files, and its processes are not stopped by signals
#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

TEST_CASE("what goes wrong while a checkpoint is written is told by the next call",
          "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  train::Checkpoints checkpoints(folder / "new", {.maximize = false});
  nn::Linear part{{.in_features = 2, .out_features = 2}};
  checkpoints.add("part", part);
  checkpoints.save({.step = 1});
  checkpoints.wait();
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit little = before;
  little.rlim_cur = 16;
  ::setrlimit(RLIMIT_FSIZE, &little);
  checkpoints.save({.step = 2});
  CHECK_THROWS_WITH(checkpoints.wait(), Contains("raise the limit (ulimit -f)"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(train::latest_checkpoint(folder / "new")->step == 1);
}

// Saves as fast as it can, from the newest checkpoint on, and says after each which step is on disk.
TEST_CASE("saver of checkpoints", "[.saver]") {
  const char* folder = std::getenv("PLEAT_TEST_SAVER");
  REQUIRE(folder != nullptr);
  struct Weights {
    Tensor tensor = zeros({200'000});
    nn::StateDict state_dict() const { return {{"tensor", tensor}}; }
    void load_state_dict(const nn::StateDict& state) { copy_(tensor, state.at("tensor")); }
  } weights;
  train::Checkpoints checkpoints(folder, {.maximize = false});
  checkpoints.add("weights", weights);
  int64_t step = 0;
  if (const auto latest = train::latest_checkpoint(folder)) step = latest->step;
  while (true) {
    fill_(weights.tensor, ++step);
    checkpoints.save({.step = step});
    checkpoints.wait();
    if (::write(STDERR_FILENO, &step, sizeof step) != sizeof step) return;
  }
}

TEST_CASE("200 kills while checkpoints are saved lose none that was completed", "[train][checkpoint][cpu]") {
  const TemporaryDirectory folder;
  const std::string setting = "PLEAT_TEST_SAVER=" + (folder / "run").string();
  std::mt19937 random(1);
  int64_t completed = 0;
  for (int kill = 0; kill < 200; ++kill) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string program = "/proc/self/exe", test = "[.saver]";
    char* arguments[] = {program.data(), test.data(), nullptr};
    std::vector<char*> environment;
    std::string variable = setting;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(variable.data());
    environment.push_back(nullptr);
    pid_t child = 0;
    REQUIRE(::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environment.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    int64_t step = 0;
    REQUIRE(::read(ends[0], &step, sizeof step) == sizeof step);
    ::usleep(static_cast<useconds_t>(random() % 8000));
    ::kill(child, SIGKILL);
    do completed = std::max(completed, step);
    while (::read(ends[0], &step, sizeof step) == sizeof step);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));

    const auto latest = train::latest_checkpoint(folder / "run");
    REQUIRE(latest);
    CHECK(latest->damaged.empty());
    CHECK(latest->step >= completed);
    CHECK(array_equal(latest->parts.at("weights").at("tensor"),
                      full({200'000}, latest->step, {.dtype = float32, .device = Device{}})));
  }
  CHECK(completed >= 200);
  CHECK(std::distance(fs::directory_iterator(folder / "run"), {}) <= 4);
}
