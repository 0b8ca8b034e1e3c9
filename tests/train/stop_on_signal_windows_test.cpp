#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <windows.h>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/system.h"
#include "pleat/train/stop_on_signal.h"

using namespace pleat;

namespace {

/// Of the status of a process that a signal has ended, as the C library has it.
constexpr DWORD ended_by_signal = 3;

/// The status of a process with a console of its own, for Ctrl-C is for all processes of a console. It runs
/// one of the hidden tests below.
DWORD status_of(const std::string& test) {
  std::wstring program(MAX_PATH, L'\0');
  program.resize(GetModuleFileNameW(nullptr, program.data(), MAX_PATH));
  std::wstring line = L"pleat_tests " + std::filesystem::path(test).wstring();
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION process{};
  if (!CreateProcessW(program.c_str(), line.data(), nullptr, nullptr, FALSE, CREATE_NO_WINDOW, nullptr,
                      nullptr, &start, &process))
    throw std::runtime_error("cannot start pleat_tests again");
  WaitForSingleObject(process.hProcess, INFINITE);
  DWORD status = 0;
  GetExitCodeProcess(process.hProcess, &status);
  CloseHandle(process.hProcess);
  CloseHandle(process.hThread);
  return status;
}

void press_ctrl_c(const train::StopOnSignal& stop) {
  GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
  for (int i = 0; i < 1000 && !stop.requested(); ++i) Sleep(10);
}

}  // namespace

TEST_CASE("Ctrl-C once", "[.ctrl_c_once]") {
  const train::StopOnSignal stop("");
  press_ctrl_c(stop);
  pleat_test::leave(stop.signal() == SIGINT ? 7 : 1);
}

TEST_CASE("Ctrl-C twice", "[.ctrl_c_twice]") {
  const train::StopOnSignal stop("");
  press_ctrl_c(stop);
  press_ctrl_c(stop);
  Sleep(10'000);
  pleat_test::leave(1);
}

TEST_CASE("the first Ctrl-C is told, the second ends the process", "[train][cpu]") {
  CHECK(status_of("[.ctrl_c_once]") == 7);
  CHECK(status_of("[.ctrl_c_twice]") == ended_by_signal);
}

TEST_CASE("signals of Windows do what they did before once a StopOnSignal is gone", "[train][cpu]") {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const train::StopOnSignal stop("");
    CHECK_FALSE(stop.requested());
    CHECK_THROWS_AS(train::StopOnSignal(), ValueError);
    std::raise(SIGBREAK);
    CHECK(stop.signal() == SIGINT);
  }
  CHECK(std::signal(SIGINT, before) == SIG_IGN);
  CHECK_FALSE(train::StopOnSignal("").requested());
}
