#include <array>
#include <csignal>

#include <sys/ioctl.h>
#include <unistd.h>

#include "pleat/core/system/console.h"

namespace pleat::system {
namespace {

constexpr std::array<int, 2> signals = {SIGINT, SIGTERM};
std::array<struct sigaction, signals.size()> before;

}  // namespace

bool is_terminal(int stream) { return ::isatty(stream) != 0; }

int terminal_columns(int stream) {
  winsize window{};
  return ::ioctl(stream, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

void write_error(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {
    // It is lost.
  }
}

std::tm local_time(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

void handle_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i)
    if (handler != nullptr)
      ::sigaction(signals[i], &action, &before[i]);
    else
      ::sigaction(signals[i], &before[i], nullptr);
}

}  // namespace pleat::system
