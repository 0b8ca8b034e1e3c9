#pragma once

#include <iosfwd>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/record.h"

namespace pleat::bench {

/// How a subcommand's records are shown.
struct Layout {
  std::vector<std::string> heading = {};    ///< labels that are the line above a block, in this order
  std::vector<std::string> columns = {};    ///< names: see report.cpp; one that says nothing is left out
  std::vector<std::string> competing = {};  ///< of records with these labels alike, which compute the same,
                                            ///< the fastest is marked; none: nothing is marked
};

/// Marks which are the fastest of those that compute the same (within 1 %, where there is more than one): an
/// entry for each record.
std::vector<bool> fastest(const std::vector<Record>& records, const std::vector<std::string>& competing);

/// The table of a block of records, as wide as the page: heading, titles, a line each; records that failed
/// say why. Titles of columns that do not fit are added to `left_out`.
std::string table(const std::vector<Record>& records, const Layout& layout, bool color,
                  std::set<std::string>* left_out = nullptr);

/// Of these labels, the texts that are there, joined.
std::string label_text(const Record& record, const std::vector<std::string>& labels,
                       const char* between = ", ");

/// Writes at once: a run over many problems takes minutes. Throws FileError when `out` takes nothing.
void put(std::ostream& out, const std::string& text);

/// For --plot: an SVG with a bar for each median, with quartiles, in groups by the problem. Labels that are
/// the same in all records stand in the title; records that failed say so. Throws UsageError where nothing
/// was timed.
std::string time_bars(const std::vector<Record>& records);

/// What became of a time since an earlier run. It has changed when it is beyond the noise of both runs: the
/// ranges between the quartiles do not meet, and the medians are more than 2 % apart, since two runs of one
/// program differ by that much where each by itself is steady.
enum class Change : unsigned char { same, faster, slower };
Change change_of(const benchmark::Measurement& before, const benchmark::Measurement& now);

/// Every record of `now` beside the one of the same subcommand and labels as a table, and a line that counts
/// the changes, what is new, and what only `before` has of subcommands that ran now; with warnings when most
/// times changed alike and when the machines differ.
std::string comparison(const Results& before, const Results& now, const std::string& name, bool color);

/// Takes records as they are found, shows them at once, and keeps them for the files.
class Report {
 public:
  /// `out` may be null: nothing is shown. `opening` is shown before whatever comes first.
  explicit Report(std::ostream* out = nullptr, bool color = false, std::string opening = {})
      : out_(out), color_(color), opening_(std::move(opening)) {}

  /// How records are shown from now on. To be called before anything is measured: that nothing can be shown
  /// is found out here.
  void set_layout(Layout layout);
  /// A block of records, shown as one table.
  void add(const std::vector<Record>& block);
  /// A block of records that were shown in another way.
  void keep(const std::vector<Record>& block);
  /// A paragraph beside the tables, as wide as the page: a conclusion, a warning.
  void say(const std::string& text);

  const std::vector<Record>& records() const { return records_; }
  bool color() const { return color_; }

 private:
  void show(const std::string& text);

  std::ostream* out_;
  bool color_;
  std::string opening_;
  Layout layout_;
  std::vector<Record> records_;
  std::set<std::string> left_out_;  ///< titles of columns for which there was no room
};

}  // namespace pleat::bench
