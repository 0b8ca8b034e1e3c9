#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/profile/measurement.h"

namespace pleat::bench {

/// One line of a result: what was measured, what was found. Names are words with _, in the order in which
/// they were set.
struct Record {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  using Numbers = std::vector<std::pair<std::string, double>>;

  std::string subcommand;
  Texts labels;                                     ///< what was measured: with the subcommand, what a
                                                    ///< baseline is matched by
  Texts details = {};                               ///< found out beside numbers: the plan that ran
  std::optional<benchmark::Measurement> time = {};  ///< none when it could not run
  Numbers values = {};                              ///< "gflops", "workspace_bytes"; all finite
  std::string failure = {};                         ///< why there is no time; empty when there is

  /// A label, else a detail; empty when there is none.
  const std::string& label(const std::string& name) const;
  std::optional<double> value(const std::string& name) const;
  /// Adds or replaces. A number that is not finite is left out: JSON has no place for it.
  void set_detail(const std::string& name, std::string text);
  void set_value(const std::string& name, double number);
  /// The subcommand and all labels, in any order, as a line: equal for records that measured the same.
  std::string key() const;
};

/// What --json writes.
struct Results {
  std::string machine;  ///< describe_machine
  std::string command;  ///< the command line, as it can be given again
  std::vector<Record> records;
};

/// As JSON: of a time the seconds of each block, too.
std::string to_text(const Results& results);
/// Throws FileError, naming `where`, for what is no result of pleat-bench.
Results results_from_text(const std::string& text, const std::string& where);
/// Throws FileError.
Results read_results(const std::filesystem::path& path);

/// Everything as a table for spreadsheets: a column for each name that occurs, empty where a record has none.
/// Throws FileError when the file cannot be written.
void write_csv(const std::string& path, const std::vector<Record>& records);

}  // namespace pleat::bench
