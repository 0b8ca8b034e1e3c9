#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/base/terminal.h"

/// What is drawn on a terminal fits its width, which may change while a program runs.

namespace pleat::train {

using pleat::terminal_width;

/// A number with so many digits after the point; a large one with an exponent, so that it fits a column.
std::string number(double value, int digits);
/// A number with so many digits that count: "0.001", "1e-05".
std::string general(double value, int digits);

/// A table that is printed line by line. Where a terminal is too narrow for all columns, it leaves some out,
/// the least important first.
class LineTable {
 public:
  struct Column {
    std::string title;
    int width;       ///< of cells, which stand right; the title may be wider
    int importance;  ///< the column with the least goes first; that with the greatest always stays
  };
  explicit LineTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column, in at most `width` columns (0: all). The titles stand before the first line, and
  /// again when other columns are shown than before. Ends in a line break.
  std::string line(const std::vector<std::string>& cells, int width);

 private:
  std::vector<Column> columns_;
  std::optional<std::vector<std::string>> left_out_;  ///< of the line before
};

/// "label [####....]  42%  note  note  0:12 left" in at most `width` columns: what does not fit is left out,
/// and the bar is as long as there is room.
std::string progress_line(const std::string& label, double share, const std::vector<std::string>& notes,
                          const std::string& left, int width);

/// Shows the progress of an epoch as a bar on a terminal, as wide as the terminal at the moment.
/// Prints nothing to a file.
class ProgressBar {
 public:
  /// `total` steps, of which `first` were done before; `label` is printed before the bar.
  ProgressBar(std::string label, int64_t total, int64_t first = 0);
  /// Removes the bar.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Whether `update` would draw now; a caller can skip costly notes otherwise.
  bool is_due(int64_t done) const;
  /// Draws the bar for `done` steps, then as many notes as fit, then the time left.
  void update(int64_t done, const std::vector<std::string>& notes);
  double seconds() const;

 private:
  std::string label_;
  int64_t total_, first_;
  bool terminal_ = terminal_width(2) > 0;
  bool drawn_anything_ = false;
  double start_, drawn_;  ///< in seconds
};

}  // namespace pleat::train
