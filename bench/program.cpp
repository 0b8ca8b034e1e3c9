#include "pleat/bench/program.h"

#include <algorithm>
#include <exception>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/machine.h"
#include "pleat/bench/record.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/memory/allocator.h"
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

/// What cannot be written or compared is said before minutes are spent. Returns the baseline.
Results check_files(const Subcommand& subcommand, const CommonOptions& options) {
  std::vector<std::pair<std::string, std::string>> files{
      {"--json", options.json == "-" ? "" : options.json}, {"--plot", options.plot}, {"--csv", options.csv}};
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  for (auto file = files.begin(); file != files.end(); ++file) {
    AtomicFile::check_writable(file->first, file->second);
    for (auto other = files.begin(); other != file; ++other)
      check<UsageError>(!same_file(other->second, file->second), "{} and {} are the same file, '{}'",
                        other->first, file->first, file->second);
  }
  if (options.baseline.empty()) return {};
  Results before = read_results(options.baseline);
  const auto comparable = [&](const Record& record) { return record.subcommand == subcommand.name(); };
  check<UsageError>(std::any_of(before.records.begin(), before.records.end(), comparable),
                    "--baseline: {} has no results of {}", options.baseline, subcommand.name());
  return before;
}

void run_subcommand(Subcommand& subcommand, const CommonOptions& options, const std::string& command,
                    std::ostream& out) {
  const std::string machine = describe_machine(options.chosen_device(), options.threads);
  const Results before = check_files(subcommand, options);
  const ThreadsScope threads(options.threads);
  if (options.fresh_memory) set_cache_limit(0, options.chosen_device());
  const bool shows = options.json != "-";
  Report report(shows ? &out : nullptr, shows && benchmark::may_color(1), machine);
  subcommand.run(options, report);

  const Results results{machine, command, report.records()};
  if (!options.baseline.empty()) report.say(comparison(before, results, options.baseline, report.color()));
  if (!shows)
    put(out, to_text(results));
  else if (!options.json.empty())
    write_file("--json", options.json, to_text(results));
  if (!options.plot.empty()) write_file("--plot", options.plot, time_bars(results.records));
  if (!options.csv.empty()) write_csv(options.csv, results.records);
  const auto failed = [](const Record& record) { return !record.failure.empty(); };
  if (results.records.empty() || !std::all_of(results.records.begin(), results.records.end(), failed)) return;
  const std::string& why = results.records.front().failure;
  fail<ValueError>("{}: nothing could be measured: {}", subcommand.name(), why.substr(0, why.find('\n')));
}

/// In the order of the help.
std::vector<SubcommandPointer> all_subcommands() {
  std::vector<SubcommandPointer> all;
  for (const auto make : {make_conv, make_ops, make_step, make_list, make_ask}) all.push_back(make());
  return all;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app{"Times what Pleat computes: docs/benchmarks.md says how to read it.", "pleat-bench"};
  app.footer("Exit status: 0 fine, 1 something failed, 2 arguments that make no sense.");
  app.require_subcommand(1);
  CommonOptions options;
  const std::vector<SubcommandPointer> subcommands = all_subcommands();
  std::vector<std::string> names;
  for (const SubcommandPointer& subcommand : subcommands) {
    CLI::App& own = *app.add_subcommand(subcommand->name(), subcommand->summary());
    subcommand->add_options(own);
    add_common_options(own, options, subcommand->is_timed());
    names.push_back(subcommand->name());
  }
  std::string command = "pleat-bench";
  for (const std::string& argument : arguments) command += ' ' + quoted(argument);
  const std::string named = !arguments.empty() && !arguments[0].starts_with('-') ? arguments[0] : "";
  const auto say = [&](const std::string& message, int status) {
    err << "pleat-bench: " << message << '\n';
    return status;
  };
  try {
    // CLI11 would only say that one is required.
    check<UsageError>(named.empty() || contains(names, named), "there is no subcommand \"{}\"; there are: {}",
                      named, fmt::join(names, " "));
    // CLI11 takes them from the end.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    for (const SubcommandPointer& subcommand : subcommands)
      if (app.got_subcommand(subcommand->name())) run_subcommand(*subcommand, options, command, out);
    return exit_fine;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      return say(
          fmt::format("{} (see pleat-bench {}{}--help)", error.what(), named, named.empty() ? "" : " "),
          exit_wrong_use);
    print_help(app, error, out);
    return out.flush().good() ? exit_fine : say("cannot write to standard output", exit_failed);
  } catch (const UsageError& error) {
    return say(error.what(), exit_wrong_use);
  } catch (const std::exception& error) {
    return say(error.what(), exit_failed);
  }
}

}  // namespace pleat::bench
