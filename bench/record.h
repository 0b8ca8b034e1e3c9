#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/profile/measurement.h"

namespace pleat::bench {

/// What of a measurement is kept. Times are seconds of one run.
struct Time {
  double median = 0;
  double lower_quartile = 0, upper_quartile = 0;
  double mean = 0;
  double wall_median = 0;  ///< by the host's clock; on the CPU the same as `median`
  double first_call = 0;   ///< the first run of all, not among the others
  double tuning = 0;       ///< the search before it; 0 without
  int64_t blocks = 0;      ///< readings of the clock
  int64_t runs = 0;        ///< in all blocks
  int threads = 1;         ///< that Pleat could use on the CPU
  bool cold_cache = false;
  std::vector<double> rounds = {};  ///< of each block, in the order of measuring; not kept in files

  Time() = default;
  /// Throws ValueError when it has no times.
  explicit Time(const benchmark::Measurement& measurement);
  bool operator==(const Time&) const = default;

  /// As Measurement::has_wide_spread: the quartiles are further apart than a tenth of the median.
  bool has_wide_spread() const { return upper_quartile - lower_quartile > 0.1 * median; }
};

/// Calls visit(name, member) for each member of a Time, in the order of files.
template <class T, class Visit>
void for_each_member(T& time, const Visit& visit) {
  visit("median", time.median);
  visit("lower_quartile", time.lower_quartile);
  visit("upper_quartile", time.upper_quartile);
  visit("mean", time.mean);
  visit("wall_median", time.wall_median);
  visit("first_call", time.first_call);
  visit("tuning", time.tuning);
  visit("blocks", time.blocks);
  visit("runs", time.runs);
  visit("threads", time.threads);
  visit("cold_cache", time.cold_cache);
}

/// One line of a result: what was measured, what was found. Names are words with _, in the order in which
/// they were set.
struct Record {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  using Numbers = std::vector<std::pair<std::string, double>>;

  std::string subcommand;
  Texts labels;                   ///< what was measured: with the subcommand, what a baseline is matched by
  Texts details = {};             ///< what was found out beside numbers: the plan that ran
  std::optional<Time> time = {};  ///< none when it could not run
  Numbers values = {};            ///< "gflops", "workspace_bytes"; all finite
  std::string failure = {};       ///< why there is no time; empty when there is

  bool operator==(const Record&) const = default;

  /// A label, else a detail; empty when there is none.
  const std::string& label(const std::string& name) const;
  std::optional<double> value(const std::string& name) const;
  /// Adds or replaces. A number that is not finite is left out: JSON has no place for it.
  void set_label(const std::string& name, std::string text);
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

std::string to_text(const Results& results);
/// Throws FileError, naming `where`, for what is no result of pleat-bench.
Results results_from_text(const std::string& text, const std::string& where);

/// The file is replaced as a whole or not at all. Throws FileError.
void write_results(const std::filesystem::path& path, const Results& results);
Results read_results(const std::filesystem::path& path);

/// Everything as a table for spreadsheets: a column for each name that occurs, empty where a record has none.
/// Throws FileError when the file cannot be written.
void write_csv(const std::string& path, const std::vector<Record>& records);

}  // namespace pleat::bench
