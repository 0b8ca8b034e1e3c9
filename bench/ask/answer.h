#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/record.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/profile/timer.h"

/// What all questions of `pleat-bench ask` share: times in cells, and from them tables, a chart and
/// sentences.

namespace pleat::bench::ask {

struct AskOptions {
  Device device = {};
  bool quick = false;  ///< sizes and times for a first look
  benchmark::TimerOptions timer = {};
};

/// A measured time and what it is of: a table, a row and a column.
struct Cell {
  std::string problem;  ///< "batch 128"
  std::string way;      ///< to compute it: "direct", "by hand"
  std::string pass;     ///< "forward"
  Time time = {};
  double error = 0;  ///< of the result, relatively, where it was found

  /// "batch 128, direct, forward".
  std::string name() const;
};

/// A cell that is yet to be measured. `tune` has to happen once before it and is no part of its time.
struct Work {
  std::string problem, way, pass;
  std::function<void()> run;
  std::function<void()> tune = {};
};

/// A column of a table: its title, and its text for a row.
struct Column {
  std::string title;
  std::function<std::string(const Cell& row)> text;
};

class Times {
 public:
  Times() = default;
  Times(std::initializer_list<Cell> cells) : cells_(cells) {}
  /// Times all of them interleaved, so that what disturbs the machine disturbs all alike, and adds them.
  void measure(const AskOptions& options, const std::vector<Work>& all);
  void add(Cell cell) { cells_.push_back(std::move(cell)); }

  const std::vector<Cell>& cells() const { return cells_; }
  std::vector<Cell>& cells() { return cells_; }
  /// Null when it was not measured.
  const Cell* find(const std::string& problem, const std::string& way, const std::string& pass) const;
  /// Throws ValueError when it was not measured.
  const Time& at(const std::string& problem, const std::string& way, const std::string& pass) const;
  /// The passes one after the other (see sum). Throws as `at`.
  Time total(const std::string& problem, const std::string& way,
             const std::vector<std::string>& passes) const;
  /// In the order in which they were measured.
  std::vector<std::string> problems() const;
  std::vector<std::string> ways(const std::string& problem) const;
  /// The way in which these passes together take the least time; `except` is left out.
  std::string fastest(const std::string& problem, const std::vector<std::string>& passes,
                      const std::string& except = {}) const;

  /// Rows of a table: one for each way to compute these problems.
  std::vector<Cell> rows(const std::vector<std::string>& problems) const;
  /// The times of these passes one after the other; without any: of the pass `title`. What a column says
  /// refers to these Times.
  Column column(const std::string& title, std::vector<std::string> passes = {}) const;
  /// The time of a pass over that of another.
  Column ratio_column(const std::string& over, const std::string& under) const;

 private:
  std::vector<Cell> cells_;
};

/// Aligned columns, of which the first says the way of each row.
std::string table(const std::string& title, const std::vector<Cell>& rows,
                  const std::vector<Column>& columns);

/// Bars in milliseconds with quartiles: `place` gives the group and the series of a cell, or none.
using Place = std::optional<std::pair<std::string, std::string>>;
std::string bars(const std::string& title, Device device, const Times& times,
                 const std::function<Place(const Cell&)>& place);

/// What the command gives for a question.
struct Answer {
  std::vector<std::string> setup = {};       ///< what was computed on what, a line each
  std::vector<std::string> tables = {};      ///< texts
  std::vector<std::string> conclusion = {};  ///< sentences that follow from the numbers
  std::string plot = {};                     ///< a chart of them, as SVG
  Times times = {};                          ///< every measurement behind it
};

/// The answer as text for a terminal, lines of about 100 characters but for tables.
std::string text(const Answer& answer);
/// A sentence broken at spaces; the first line begins with `first`, further ones with as many spaces.
std::string indented(const std::string& sentence, const std::string& first = {});
/// "12.3 ms"; with a ~ when the quartiles are more than a tenth of the median apart.
std::string text(const Time& time);
/// "4.60 ms": a median in a sentence.
std::string median_text(const Time& time);
/// "2.3", "1.25", "140": a ratio with as many digits as one reads.
std::string factor_text(double factor);
/// With a capital letter, as a sentence begins.
std::string capitalized(std::string text);

/// Of single runs, in seconds. Throws ValueError for none.
Time time_of(const std::vector<double>& runs);
/// One after the other: medians and quartiles added, which makes the quartiles a little too wide.
Time sum(const Time& a, const Time& b);

/// a / b, and between what the quartiles leave it.
struct Ratio {
  double value = 0, low = 0, high = 0;
};
Ratio ratio(const Time& a, const Time& b);

/// How a compares with b. Level: medians within 5 % of each other, which on a machine with other work means
/// nothing. Unclear: further apart, but their quartiles overlap.
enum class Relation : unsigned char { shorter, level, unclear, longer };
Relation relate(const Time& a, const Time& b);
/// The one of four texts, by Relation, that says how a compares with b.
std::string verdict(const Time& a, const Time& b, const std::array<std::string, 4>& texts);

/// A comparison as part of a sentence, the longer one first: "unfold takes 2.3 times as long as direct (4.60
/// ms against 2.00 ms, quartiles 2.10 to 2.50)", "unfold and direct are level (...)", or "unfold and direct
/// cannot be told apart in the noise (...)".
std::string comparison(const std::string& a, const Time& time_a, const std::string& b, const Time& time_b);

/// A random gradient of a result, in the format of the result, as the next layer would give it.
Tensor gradient_for(const Tensor& y);
/// Implementations of a convolution that are made for speed: all but the reference, the preferred first.
std::vector<std::string> fast_implementations(Device device);

}  // namespace pleat::bench::ask
