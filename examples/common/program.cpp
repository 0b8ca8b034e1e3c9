#include "program.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <vector>

#include "options.h"
#include <CLI/CLI.hpp>
#include <pleat/core/base/terminal.h>
#include <pleat/core/random/random.h>
#include <pleat/train/finite.h>

namespace {

bool silent = false;

constexpr const char* statuses =
    "Exit status: 0 fine, 1 something failed, 2 options that make no sense, 3 a loss that is not finite, "
    "128 + signal stopped by a signal.";

int say(const CLI::App& app, const std::string& message, int status) {
  std::cerr << app.get_name() << ": " << message << '\n';
  return status;
}

}  // namespace

void print_help(const CLI::App& app, const CLI::Error& why, std::ostream& out) {
  std::ostringstream help;
  app.exit(why, help, help);
  out << pleat::wrapped(help.str(), pleat::page_width());
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& run) {
  app.footer(statuses);
  try {
    check_standard_streams();
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0)
        return say(app, std::string(error.what()) + " (see " + app.get_name() + " --help)", exit_wrong_use);
      print_help(app, error, std::cout);
      flush_output();
      return exit_fine;
    }
    run();
    flush_output();
    return exit_fine;
  } catch (const UsageError& error) {
    return say(app, error.what(), exit_wrong_use);
  } catch (const pleat::train::NotFiniteError& error) {
    return say(app, error.what(), exit_not_finite);
  } catch (const StoppedBySignal& stopped) {
    return say(app, stopped.what(), exit_signal + stopped.signal());
  } catch (const std::exception& error) {
    return say(app, error.what(), exit_failed);
  }
}

int run_program(const std::string& name, const std::string& purpose, int argc, char** argv,
                const std::function<void()>& run) {
  CLI::App app{purpose, name};
  return run_program(app, argc, argv, run);
}

int run_training(CLI::App& app, TrainingOptions options, int argc, char** argv,
                 const std::function<void(const TrainingOptions&)>& run) {
  app.add_option("--steps", options.steps, "Steps of training; less than the default gives a worse result")
      ->transform(whole_number(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of everything random")
      ->transform(seed_number())
      ->capture_default_str();
  return run_program(app, argc, argv, [&] {
    pleat::manual_seed(options.seed);
    run(options);
  });
}

void flush_output() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout.good() && std::ferror(stdout) == 0) return;
  const int reason = errno;
  throw pleat::FileError(std::string("cannot write to standard output: ") +
                         (reason != 0 ? std::strerror(reason) : "something was lost"));
}

void be_silent() { silent = true; }

void print(const char* format, ...) {
  if (silent) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  flush_output();
}

void print_text(const std::string& text) {
  print("%s\n", pleat::wrapped(text, pleat::terminal_width(1) - 1).c_str());
}
