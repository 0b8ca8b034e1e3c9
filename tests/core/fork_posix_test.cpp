// POSIX: Windows has no fork()
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "pleat/core/files/atomic_file.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/data/loader.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using namespace std::chrono_literals;

namespace {

/// The locks of a sanitizer's memory stay locked in a child when another thread has one (g++ 12), and
/// ThreadSanitizer ends a child that starts threads.
bool sanitized() {
#if defined(__SANITIZE_THREAD__)
  constexpr bool yes = true;
#else
  constexpr bool yes = PLEAT_ADDRESS_SANITIZER;
#endif
  if (yes) skip("a sanitizer does not let every child of fork() go on");
  return yes;
}

/// What a child of fork() returns or throws (99), after it has left the program as `return` from main does. A
/// child that hangs is ended by a signal: negative.
template <class Body>
int status_of_child(const Body& body) {
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a child: %s\n", error.what());
    }
    std::exit(status);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// On several threads, in every pass.
std::vector<float> computed() {
  manual_seed(7);
  const Tensor x = randn({4, 16, 16, 16}), w = randn({16, 16, 3, 3});
  w.set_requires_grad();
  const Tensor y = conv2d(x, w, {}, {.padding = 1});
  sum(matmul(reshape(y, {64, 256}), randn({256, 64}))).backward();
  return w.grad().to_vector<float>();
}

/// By every implementation.
std::vector<std::vector<float>> convolved() {
  manual_seed(7);
  const Tensor x = randn({2, 16, 16, 16}), w = randn({16, 16, 3, 3});
  std::vector<std::vector<float>> all;
  for (const std::string& name : ops::conv_implementations())
    all.push_back(conv2d(x, w, {}, {.padding = 1, .implementation = name}).to_vector<float>());
  return all;
}

/// Computes and allocates while it exists, so that a fork finds another thread anywhere.
class Busy {
 public:
  Busy() {
    while (rounds_ == 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> rounds_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) {
    for (int64_t i = 0; !stop.stop_requested(); ++i) {
      const Tensor x = randn({64 + i % 100, 200});
      sum(matmul(x, transpose(x, 0, 1))).item();
      const Tensor large = zeros({2'000'000 + i % 7 * 100'000});
      ++rounds_;
    }
  }};
};

data::LoaderOptions with_workers(int workers) {
  return {.batch_size = 2, .shuffle = true, .workers = workers};
}
data::TensorDataset numbers(int64_t count) {
  return data::TensorDataset(reshape(arange(0, static_cast<double>(count)), {count, 1}));
}
std::vector<float> rest_of(data::DataLoader::Iterator& batch) {
  std::vector<float> all;
  for (; batch != std::default_sentinel; ++batch)
    for (const float value : batch->inputs.to_vector<float>()) all.push_back(value);
  return all;
}

}  // namespace

TEST_CASE("a child of fork() ends, whatever the pool's threads do", "[core][cpu]") {
  if (sanitized()) return;
  const ThreadsScope threads(4);
  computed();
  CHECK(status_of_child([] { return 0; }) == 0);  // they wait for work
  std::this_thread::sleep_for(50ms);
  CHECK(status_of_child([] { return 0; }) == 0);  // they sleep
  const Busy other;
  for (int i = 0; i < 5; ++i) CHECK(status_of_child([] { return 0; }) == 0);
}

TEST_CASE("a child of fork() computes with all its threads, and so does its child", "[core][cpu]") {
  if (sanitized()) return;
  const ThreadsScope threads(3);
  const std::vector<float> expected = computed();
  const auto as_expected = [&] { return computed() == expected ? 0 : 1; };
  std::this_thread::sleep_for(50ms);
  CHECK(status_of_child(as_expected) == 0);
  CHECK(status_of_child([&] {
          set_num_threads(5);
          // All threads together: each piece waits for the others.
          std::atomic<int> here = 0;
          parallel_chunks(5, [&](int64_t) {
            for (++here; here < 5;) std::this_thread::yield();
          });
          return as_expected();
        }) == 0);
  CHECK(status_of_child([&] {
          computed();
          return status_of_child(as_expected) + as_expected();
        }) == 0);
  CHECK(computed() == expected);
}

TEST_CASE("every implementation of a convolution computes in a child of fork()", "[core][cpu]") {
  if (sanitized()) return;
  const ThreadsScope threads(3);
  const auto expected = convolved();
  CHECK(status_of_child([&] { return convolved() == expected ? 0 : 1; }) == 0);
  CHECK(convolved() == expected);
}

TEST_CASE("a process forks while another thread computes", "[core][cpu]") {
  if (sanitized()) return;
  const ThreadsScope threads(3);
  const std::vector<float> expected = computed();
  const Busy other;
  for (int i = 0; i < 20; ++i) CHECK(status_of_child([&] { return computed() == expected ? 0 : 1; }) == 0);
  // From a thread that is not the main one.
  std::vector<int> statuses;
  std::thread([&] {
    for (int i = 0; i < 5; ++i)
      statuses.push_back(status_of_child([&] { return computed() == expected ? 0 : 1; }));
  }).join();
  CHECK(statuses == std::vector<int>(5, 0));
}

TEST_CASE("a loop that forks ends in the child, or says what is missing", "[core][cpu]") {
  if (sanitized()) return;
  const ThreadsScope threads(3);
  std::atomic<int> begun = 0;
  std::atomic<bool> go_on = false;
  const auto main_thread = std::this_thread::get_id();
  pid_t child = -1;
  std::string message;
  try {
    parallel_chunks(3, [&](int64_t) {
      ++begun;
      while (begun < 3) std::this_thread::yield();
      if (std::this_thread::get_id() != main_thread) {
        while (!go_on) std::this_thread::yield();
        return;
      }
      std::cout.flush();
      child = ::fork();
      if (child == 0) ::alarm(30);
      go_on = true;
    });
  } catch (const Error& error) {
    message = error.what();
  }
  if (child == 0) ::_exit(message.starts_with("parallel_for: fork() was called in the loop") ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(message.empty());
}

TEST_CASE("a loader that is alive at a fork goes on in parent and child", "[core][data][cpu]") {
  if (sanitized()) return;
  for (const int workers : {0, 1, 3}) {
    data::DataLoader loader(numbers(40), with_workers(workers));
    std::vector<float> expected;
    {
      data::DataLoader same(numbers(40), with_workers(0));
      auto batch = same.begin();
      ++batch;
      expected = rest_of(batch);
    }
    auto batch = loader.begin();
    ++batch;
    CHECK(status_of_child([&] {
            if (rest_of(batch) != expected) return 1;
            auto next = loader.begin();  // with workers of its own
            return rest_of(next).size() == 40 ? 0 : 2;
          }) == 0);
    CHECK(status_of_child([&] {
            auto gone = std::make_unique<data::DataLoader>(std::move(loader));
            gone.reset();
            batch = data::DataLoader(numbers(4), with_workers(1)).begin();
            return 0;
          }) == 0);
    CHECK(rest_of(batch) == expected);
  }
}

TEST_CASE("a profiler that records at a fork ends in parent and child", "[core][profile][cpu]") {
  if (sanitized()) return;
  const Busy other;
  profile::Profiler profiler;
  computed();
  const auto convolutions = [&] {
    profiler.stop();
    return profiler.profile().key_averages().table().find("conv2d") != std::string::npos ? 0 : 1;
  };
  for (int i = 0; i < 5; ++i)
    CHECK(status_of_child([&] {
            computed();
            if (convolutions() != 0) return 1;
            const profile::Profiler again;
            return computed().empty() ? 2 : 0;
          }) == 0);
  CHECK(convolutions() == 0);
}

TEST_CASE("files that are being written at a fork stay the parent's", "[core][train][cpu]") {
  if (sanitized()) return;
  const TemporaryDirectory directory;
  auto file = std::make_unique<AtomicFile>("test", directory / "x");
  file->write("whole");
  auto folder = std::make_unique<train::RunFolder>(directory / "run", std::vector<std::string>{});
  train::Checkpoints checkpoints(directory / "checkpoints", {.maximize = false});
  Tensor weight = randn({2'000'000});
  const nn::StateDict state{{"weight", weight}};
  struct Part {
    nn::StateDict state_dict() const { return state; }
    void load_state_dict(const nn::StateDict&) {}
    const nn::StateDict& state;
  } part{state};
  checkpoints.add("part", part);
  checkpoints.save({.step = 1});
  CHECK(status_of_child([&] {
          file.reset();
          folder.reset();
          checkpoints.wait();
          return 0;
        }) == 0);
  CHECK(std::filesystem::exists(directory / "run" / ".lock"));
  file->commit();
  checkpoints.wait();
  CHECK(train::latest_checkpoint(directory / "checkpoints")->step == 1);
}
