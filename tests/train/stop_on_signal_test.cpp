#include "pleat/train/stop_on_signal.h"

#include <csignal>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("a signal is told once, and does what it did before once a StopOnSignal is gone", "[train][cpu]") {
  static volatile std::sig_atomic_t came = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    came = 0;
    const auto before = std::signal(signal, [](int one) { came = one; });
    {
      const train::StopOnSignal stop("");
      CHECK_FALSE(stop.requested());
      CHECK_THROWS_AS(train::StopOnSignal(), ValueError);
      std::raise(signal);
      CHECK(stop.signal() == signal);
      CHECK(came == 0);
    }
    std::raise(signal);
    CHECK(came == signal);
    std::signal(signal, before);
    const train::StopOnSignal again("");
    CHECK_FALSE(again.requested());
  }
}
