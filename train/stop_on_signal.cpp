#include "pleat/train/stop_on_signal.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include <unistd.h>

#include "pleat/core/base/error.h"

namespace pleat::train {
namespace {

constexpr std::array<int, 2> signals = {SIGINT, SIGTERM};

// A handler of signals can reach nothing else.
std::atomic<bool> exists = false;
std::atomic<int> came = 0;
std::string& notice_text() {
  static auto& text = *new std::string;
  return text;
}
std::array<struct sigaction, signals.size()> before;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void pleat_stop_on_signal(int signal) {
  const int error = errno;
  if (came.exchange(signal) != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
  } else if (::write(STDERR_FILENO, notice_text().data(), notice_text().size()) < 0) {
    // The notice is lost.
  }
  errno = error;
}

}  // namespace

StopOnSignal::StopOnSignal(std::string notice) {
  if (exists.exchange(true)) throw ValueError("StopOnSignal: there is one already");
  came = 0;
  notice_text() = std::move(notice);
  struct sigaction action {};
  action.sa_handler = pleat_stop_on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &before[i]);
}

StopOnSignal::~StopOnSignal() {
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before[i], nullptr);
  exists = false;
}

int StopOnSignal::signal() const { return came; }

}  // namespace pleat::train
