#include <array>
#include <csignal>

#include <io.h>
#include <windows.h>

#include "pleat/core/system/console.h"

namespace pleat::system {
namespace {

using Handler = void (*)(int);

constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGBREAK};
std::array<Handler, signals.size()> before;
Handler wanted = nullptr;

HANDLE handle_of(int stream) { return GetStdHandle(stream == 1 ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE); }

/// A handler serves one signal.
void handle_again(int signal) {
  std::signal(signal, handle_again);
  wanted(signal == SIGBREAK ? SIGINT : signal);
}

}  // namespace

bool is_terminal(int stream) {
  DWORD mode = 0;
  if (!GetConsoleMode(handle_of(stream), &mode)) return false;
  // Consoles before Windows 10 know no escape sequences.
  constexpr DWORD escapes = ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
  return SetConsoleMode(handle_of(stream), mode | escapes) && SetConsoleOutputCP(CP_UTF8);
}

int terminal_columns(int stream) {
  CONSOLE_SCREEN_BUFFER_INFO window{};
  if (!GetConsoleScreenBufferInfo(handle_of(stream), &window)) return 0;
  return window.srWindow.Right - window.srWindow.Left + 1;
}

void write_error(std::string_view text) {
  DWORD written = 0;
  WriteFile(handle_of(2), text.data(), static_cast<DWORD>(text.size()), &written, nullptr);
}

std::tm local_time(std::time_t time) {
  std::tm parts{};
  ::localtime_s(&parts, &time);
  return parts;
}

void handle_signals(void (*handler)(int)) {
  if (handler != nullptr) wanted = handler;
  for (std::size_t i = 0; i < signals.size(); ++i)
    if (handler != nullptr)
      before[i] = std::signal(signals[i], handle_again);
    else
      std::signal(signals[i], before[i]);
}

}  // namespace pleat::system
