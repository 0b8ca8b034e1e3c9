#include "pleat/train/stop_on_signal.h"

#include <atomic>
#include <cerrno>
#include <csignal>

#include "pleat/core/base/error.h"
#include "pleat/core/system/console.h"

namespace pleat::train {
namespace {

// A handler of signals can reach nothing else.
std::atomic<bool> exists = false;
std::atomic<int> came = 0;
std::string& notice_text() {
  static auto& text = *new std::string;
  return text;
}
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void pleat_stop_on_signal(int signal) {
  const int error = errno;
  if (came.exchange(signal) != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
  } else {
    system::write_error(notice_text());
  }
  errno = error;
}

}  // namespace

StopOnSignal::StopOnSignal(std::string notice) {
  if (exists.exchange(true)) throw ValueError("StopOnSignal: there is one already");
  came = 0;
  notice_text() = std::move(notice);
  system::handle_signals(pleat_stop_on_signal);
}

StopOnSignal::~StopOnSignal() {
  system::handle_signals(nullptr);
  exists = false;
}

int StopOnSignal::signal() const { return came; }

}  // namespace pleat::train
