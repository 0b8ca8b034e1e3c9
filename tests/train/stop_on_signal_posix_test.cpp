// POSIX: processes of Windows get signals only from themselves and from their console
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/train/stop_on_signal.h"

using namespace pleat;

namespace {

/// How a process ended in which a StopOnSignal got both signals; negative: by which signal.
int end_after(int first, int second) {
  const pid_t child = ::fork();
  if (child == 0) {
    const train::StopOnSignal stop("");
    std::raise(first);
    if (stop.signal() != first) ::_exit(1);
    if (second != 0) std::raise(second);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("the first signal is told, the second ends the process", "[train][cpu]") {
  for (const int first : {SIGINT, SIGTERM}) {
    CHECK(end_after(first, 0) == 0);
    for (const int second : {SIGINT, SIGTERM}) CHECK(end_after(first, second) == -second);
  }
}

TEST_CASE("signals do what they did before once a StopOnSignal is gone", "[train][cpu]") {
  struct sigaction before {
  }, during{}, after{};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const train::StopOnSignal stop("");
    CHECK_FALSE(stop.requested());
    CHECK_THROWS_AS(train::StopOnSignal(), ValueError);
    ::sigaction(SIGINT, nullptr, &during);
    CHECK(during.sa_handler != before.sa_handler);
    std::raise(SIGTERM);
    CHECK(stop.requested());
  }
  ::sigaction(SIGINT, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  const train::StopOnSignal again("");
  CHECK_FALSE(again.requested());
}
