#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include <pleat/core/base/error.h>

namespace CLI {
class App;
class Error;
}  // namespace CLI

/// Common to all programs: exit statuses, and output whose loss is an error.

enum ExitStatus : int {
  exit_fine = 0,
  exit_failed = 1,
  exit_wrong_use = 2,   ///< invalid options: nothing was written or computed
  exit_not_finite = 3,  ///< a loss or a network that is not finite
  exit_signal = 128     ///< and the number of a signal: stopped by it, and able to go on
};

/// A run that a signal stopped, and that can go on: the program exits with status 128 + signal.
class StoppedBySignal : public pleat::Error {
 public:
  StoppedBySignal(const std::string& what, int signal) : Error(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Invalid options: the program prints a line and exits with status 2.
class UsageError : public pleat::ValueError {
 public:
  using ValueError::ValueError;
};

/// Reads the options, calls `run` and returns the exit status. An error is printed as a line on
/// standard error that begins with the name of `app`; --help lists the statuses.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& run);

/// Writes what was asked for by --help, in lines that fit the terminal, or 80 columns where there is none.
void print_help(const CLI::App& app, const CLI::Error& why, std::ostream& out);

/// The same for a program without options; `purpose` is the text of its --help.
int run_program(const std::string& name, const std::string& purpose, int argc, char** argv,
                const std::function<void()>& run);

/// How the small examples are run: --steps and --seed, with these values when they are not given.
struct TrainingOptions {
  int64_t steps;
  uint64_t seed = 1;
};
/// The same for a program that trains: adds the two options, and seeds the default generator.
int run_training(CLI::App& app, TrainingOptions options, int argc, char** argv,
                 const std::function<void(const TrainingOptions&)>& run);

/// From now on print and print_text do nothing: one of several processes says what all of them do.
void be_silent();

/// std::printf and a flush. Throws FileError when standard output cannot be written.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
/// Prints a text; on a terminal it is broken into lines between words.
void print_text(const std::string& text);

/// Throws FileError when something that went to standard output was lost, as on a full disk.
void flush_output();

/// To be called first: the next file that is opened must not get the number of a stream that the
/// caller closed, and output that is lost must not end the program by a signal (SIGPIPE, SIGXFSZ).
/// Throws FileError when standard output is closed.
void check_standard_streams();
