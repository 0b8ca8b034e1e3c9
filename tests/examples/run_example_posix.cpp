#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleat/tests/examples/run_example.h"
#include "pleat/tests/temporary_directory.h"

namespace pleat_test {
namespace {

std::string path_of(const std::string& program) {
  return std::string(PLEAT_BUILD_DIR) + (program == "pleat-bench" ? "/bench/" : "/examples/") + program;
}

/// In the child. What it must not do is done before: only calls that are safe after fork.
[[noreturn]] void become(const std::string& path, const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment) {
  for (const std::string& setting : environment) {
    const auto equals = setting.find('=');
    ::setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  // Behind what runs programs for another processor, which is words.
  std::istringstream emulator(PLEAT_EMULATOR);
  std::vector<std::string> words{std::istream_iterator<std::string>(emulator), {}};
  words.push_back(path);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  ::_exit(126);
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void set_columns(int terminal, int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(terminal, TIOCSWINSZ, &size);
}

ExampleOutcome run_on_terminal(const std::string& path, const std::vector<std::string>& arguments,
                               const ExampleOptions& options) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    throw std::runtime_error("no pseudo-terminal");
  const int other = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  set_columns(terminal, options.columns);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(other, STDOUT_FILENO);
    ::dup2(other, STDERR_FILENO);
    become(path, arguments, options.environment);
  }
  ::close(other);
  ExampleOutcome outcome{};
  char piece[4096];
  // Reading fails when the last process that has the terminal is gone.
  for (ssize_t n = 0; (n = ::read(terminal, piece, sizeof piece)) > 0;) {
    if (outcome.out.empty() && options.later_columns > 0) set_columns(terminal, options.later_columns);
    outcome.out.append(piece, static_cast<std::size_t>(n));
  }
  ::close(terminal);
  outcome.status = status_of(child);
  return outcome;
}

}  // namespace

ExampleOutcome run_example(const std::string& program, const std::vector<std::string>& arguments,
                           const ExampleOptions& options) {
  if (options.columns > 0) return run_on_terminal(path_of(program), arguments, options);
  const TemporaryDirectory folder;
  const std::string out = options.stdout_to.empty() ? (folder / "out").string() : options.stdout_to;
  const std::string err = (folder / "err").string();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);
    if (out != "-") ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    const int errors = ::open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(errors, STDERR_FILENO);
    if (out == "-") ::close(STDOUT_FILENO);
    become(path_of(program), arguments, options.environment);
  }
  const int status = status_of(child);
  return {status, options.stdout_to.empty() ? read_text(out) : "", read_text(err)};
}

int start_example(const std::string& program, const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    become(path_of(program), arguments, {});
  }
  return child;
}

}  // namespace pleat_test
