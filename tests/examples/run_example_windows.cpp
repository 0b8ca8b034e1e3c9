#include <cstdlib>
#include <stdexcept>

#include <windows.h>

#include "pleat/tests/examples/run_example.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

namespace pleat_test {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::string text;
  for (const unsigned char c : read_bytes(file))
    if (c != '\r') text += static_cast<char>(c);
  return text;
}

HANDLE file_for(const std::filesystem::path& path) {
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  return CreateFileW(path.c_str(), GENERIC_WRITE, FILE_SHARE_READ, &inherited, CREATE_ALWAYS, 0, nullptr);
}

/// As the program takes them apart again: in quotes, in which a quote, and backslashes before one, have a
/// backslash.
std::string command_of(const std::string& program, const std::vector<std::string>& arguments) {
  std::string line = '"' + program + '"';
  for (const std::string& argument : arguments) {
    line += " \"";
    std::size_t backslashes = 0;
    for (const char c : argument) {
      if (c == '"') line.append(backslashes + 1, '\\');
      backslashes = c == '\\' ? backslashes + 1 : 0;
      line += c;
    }
    line.append(backslashes, '\\');
    line += '"';
  }
  return line;
}

/// Variables of the environment, for a scope.
class Variables {
 public:
  explicit Variables(const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      const auto equals = setting.find('=');
      const std::string name = setting.substr(0, equals);
      const char* const value = std::getenv(name.c_str());
      before_.emplace_back(name, value != nullptr ? value : "");
      set_variable(name, setting.substr(equals + 1).c_str());
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) set_variable(name, value.empty() ? nullptr : value.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> before_;
};

}  // namespace

ExampleOutcome run_example(const std::string& program, const std::vector<std::string>& arguments,
                           const ExampleOptions& options) {
  const TemporaryDirectory folder;
  const auto path =
      std::filesystem::absolute(std::filesystem::path(PLEAT_BUILD_DIR) /
                                (program == "pleat-bench" ? "bench" : "examples") / (program + ".exe"));
  const auto out = options.stdout_to.empty() ? folder / "out" : std::filesystem::path(options.stdout_to);
  std::wstring line = std::filesystem::path(command_of(path.string(), arguments)).wstring();
  STARTUPINFOW start{};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = file_for(out);
  start.hStdError = file_for(folder / "err");
  PROCESS_INFORMATION process{};
  {
    const Variables environment(options.environment);
    if (!CreateProcessW(path.c_str(), line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start,
                        &process))
      throw std::runtime_error("cannot start " + path.string());
  }
  WaitForSingleObject(process.hProcess, INFINITE);
  DWORD status = 0;
  GetExitCodeProcess(process.hProcess, &status);
  for (HANDLE handle : {process.hProcess, process.hThread, start.hStdOutput, start.hStdError})
    CloseHandle(handle);
  return {static_cast<int>(status), options.stdout_to.empty() ? text_of(out) : "", text_of(folder / "err")};
}

}  // namespace pleat_test
