#pragma once

#include <functional>
#include <string>

#include <pleat/core/base/error.h>

namespace CLI {
class App;
}

/// What all programs have in common: exit statuses, and that what they say arrives or is an error.

enum ExitStatus : int {
  exit_fine = 0,
  exit_failed = 1,
  exit_wrong_use = 2,  ///< options that make no sense: nothing was written or computed
  exit_not_finite = 3  ///< a loss or a network that is no finite number any more
};

/// What the user asked for makes no sense: the program says so in a line and exits with status 2.
class UsageError : public pleat::ValueError {
 public:
  using ValueError::ValueError;
};

/// A training that cannot go on: the program exits with status 3.
class NotFiniteError : public pleat::NumericError {
 public:
  using NumericError::NumericError;
};

/// Reads the options, calls `run` and returns the exit status. What goes wrong is a line on standard error,
/// which the name of `app` opens; --help tells the statuses.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& run);

/// The same for a program without options; `purpose` is what its --help says.
int run_program(const std::string& name, const std::string& purpose, int argc, char** argv,
                const std::function<void()>& run);

/// Like std::printf, at once. Throws FileError when standard output takes nothing (any more).
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
/// A text of words as it is; on a terminal it is broken into lines between words.
void print_text(const std::string& text);

/// Throws FileError when something that went to standard output was lost, as on a full disk.
void flush_output();

/// To be called first: a stream that the caller closed must not lend its number to the next file that is
/// opened. Throws FileError when standard output is closed.
void check_standard_streams();
