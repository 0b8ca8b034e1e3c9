#pragma once

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
    int importance;  ///< the column with the least goes first
  };
  explicit LineTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column, in at most `width` columns (0: all). The titles stand before the first line, and
  /// again when other columns are shown than before. Ends in a line break.
  std::string line(const std::vector<std::string>& cells, int width);

 private:
  std::vector<std::size_t> fitting(int width) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> shown_;
};

/// "label [####....]  42%  note  note  0:12 left" in at most `width` columns: what does not fit is left out,
/// and the bar is as long as there is room.
std::string progress_line(const std::string& label, double share, const std::vector<std::string>& notes,
                          const std::string& left, int width);

}  // namespace pleat::train
