#include "pleat/bench/program.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <ostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "pleat/bench/baseline.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/record.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/examples/common/options.h"
#include "pleat/profile/compare.h"

namespace pleat::bench {
namespace {

/// As a shell takes it.
std::string quoted(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_=./:,+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + '\'';
}

bool wants_color(const CommonOptions& options) {
  return options.color == "always" || (options.color == "auto" && benchmark::may_color(STDOUT_FILENO));
}

void check_options(const Subcommand& subcommand, const CommonOptions& options) {
  const char* timed = options.seconds > 0  ? "--seconds"
                      : options.quick      ? "--quick"
                      : options.cold_cache ? "--cold-cache"
                                           : nullptr;
  check<UsageError>(subcommand.is_timed() || timed == nullptr, "{}: {}: has no effect on it",
                    subcommand.name(), timed);
  check<UsageError>(options.plot.empty() || subcommand.has_plot(), "{}: --plot: has nothing to draw",
                    subcommand.name());
}

/// What cannot be written or compared is said before minutes are spent. Returns the baseline.
Results check_files(const Subcommand& subcommand, const CommonOptions& options) {
  std::vector<OutputFile> files = subcommand.files();
  if (options.json != "-") files.push_back({"--json", options.json});
  files.push_back({"--csv", options.csv});
  files.push_back({"--plot", options.plot});
  std::erase_if(files, [](const OutputFile& file) { return file.path.empty(); });
  for (auto file = files.begin(); file != files.end(); ++file) {
    AtomicFile::check_writable(file->option, file->path);
    for (auto other = files.begin(); other != file; ++other)
      check<UsageError>(!same_file(other->path, file->path), "{} and {} are the same file, '{}'",
                        other->option, file->option, file->path);
  }
  if (options.baseline.empty()) return {};
  Results before = read_results(options.baseline);
  const auto comparable = [&](const Record& record) { return record.subcommand == subcommand.name(); };
  check<UsageError>(std::any_of(before.records.begin(), before.records.end(), comparable),
                    "--baseline: {} has no results of {}", options.baseline, subcommand.name());
  return before;
}

/// Returns the exit status.
int run_subcommand(Subcommand& subcommand, const CommonOptions& options, const std::string& command,
                   std::ostream& out, std::ostream& err) {
  check_options(subcommand, options);
  const std::string machine = describe_machine(options.chosen_device(), options.threads);
  const Results before = check_files(subcommand, options);
  const ThreadsScope threads(options.threads);
  const bool shows = options.json != "-";
  Report report(shows ? &out : nullptr, shows && wants_color(options), machine);
  subcommand.run(options, report);

  const Results results{machine, command, report.records()};
  if (!options.baseline.empty()) report.say(comparison(before, results, options.baseline, report.color()));
  if (options.json == "-")
    put(out, to_text(results));
  else if (!options.json.empty())
    write_results(options.json, results);
  if (!options.csv.empty()) write_csv(options.csv, results.records);
  if (!options.plot.empty()) write_file("--plot", options.plot, subcommand.plot(results.records));
  for (const OutputFile& file : subcommand.files())
    if (!file.path.empty()) write_file(file.option, file.path, file.content(results.records));
  const auto failed = [](const Record& record) { return !record.failure.empty(); };
  if (results.records.empty() || !std::all_of(results.records.begin(), results.records.end(), failed))
    return exit_fine;
  const std::string& why = results.records.front().failure;
  err << "pleat-bench: " << subcommand.name()
      << ": nothing could be measured: " << why.substr(0, why.find('\n')) << '\n';
  return exit_failed;
}

/// In the order of the help.
std::vector<SubcommandPointer> all_subcommands() {
  std::vector<SubcommandPointer> all;
  for (const auto make : {make_conv, make_list, make_norm, make_unfold, make_elementwise, make_matmul,
                          make_step, make_ceilings, make_ask, make_selftest})
    all.push_back(make());
  return all;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app{"Times what Pleat computes: docs/benchmarks.md says how to read it.", "pleat-bench"};
  app.footer("Exit status: 0 fine, 1 something failed, 2 arguments that make no sense.");
  app.require_subcommand(1);
  CommonOptions options;
  const std::vector<SubcommandPointer> subcommands = all_subcommands();
  std::vector<CLI::App*> apps;
  for (const SubcommandPointer& subcommand : subcommands) {
    apps.push_back(app.add_subcommand(subcommand->name(), subcommand->summary()));
    subcommand->add_options(*apps.back());
    add_common_options(*apps.back(), options);
  }
  const bool named = !arguments.empty() && arguments[0].rfind('-', 0) != 0;
  // CLI11 would only say that one is required.
  if (named && std::none_of(apps.begin(), apps.end(),
                            [&](CLI::App* one) { return one->get_name() == arguments[0]; })) {
    err << "pleat-bench: there is no subcommand \"" << arguments[0] << "\"; there are:";
    for (const CLI::App* one : apps) err << ' ' << one->get_name();
    err << '\n';
    return exit_wrong_use;
  }
  try {
    // CLI11 takes them from the end.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error, out, err);
      out.flush();
      if (out.good()) return exit_fine;
      err << "pleat-bench: cannot write to standard output\n";
      return exit_failed;
    }
    err << "pleat-bench: " << error.what() << " (see pleat-bench " << (named ? arguments[0] + " " : "")
        << "--help)\n";
    return exit_wrong_use;
  }
  try {
    std::string command = "pleat-bench";
    for (const std::string& argument : arguments) command += ' ' + quoted(argument);
    for (std::size_t i = 0; i < apps.size(); ++i)
      if (apps[i]->parsed()) return run_subcommand(*subcommands[i], options, command, out, err);
  } catch (const std::exception& error) {
    err << "pleat-bench: " << error.what() << '\n';
    return dynamic_cast<const UsageError*>(&error) != nullptr ? exit_wrong_use : exit_failed;
  }
  return exit_fine;
}

}  // namespace pleat::bench
