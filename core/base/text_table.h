// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pleat {

/// How many columns of a terminal UTF-8 text takes, as far as each character takes one;
/// escape sequences of colours take none.
std::size_t display_width(const std::string& text);

/// 1234567 -> "1,234,567".
std::string grouped(int64_t n);

/// The table of plain text that everything in Pleat prints: cells in columns as wide as their widest cell.
/// Spaces at the end of a line are left out.
class TextTable {
 public:
  struct Column {
    bool left = false;      ///< text is aligned left, numbers right
    std::size_t least = 0;  ///< width of the column, at least
    int importance = 0;     ///< of those above 0 `fit` leaves out the column with the least first
    std::size_t wraps = 0;  ///< above 0: `fit` may break its cells between words, into so many columns
  };
  /// `indent` stands before each line of cells, `gap` between two columns.
  explicit TextTable(std::vector<Column> columns, std::string indent = "", std::string gap = "  ");

  /// A line of cells, one for each column at most; `color`, an escape sequence, colours the whole line.
  void add(std::vector<std::string> cells, const char* color = nullptr);
  /// A line of text that follows no columns.
  void add_text(const std::string& text);
  /// A line of dashes under each column, or through all of them.
  void add_rule(bool solid = false);

  /// Brings lines of cells to at most `width` columns, as far as that can be done: leaves out columns, then
  /// wraps. Returns what stands in the first line of those left out. To be called once, after the last line.
  std::vector<std::string> fit(std::size_t width);

  /// All lines, each with its end.
  std::string text() const;

 private:
  struct Line {
    enum class Kind : unsigned char { cells, text, rule, solid_rule } kind;
    std::vector<std::string> cells;
    const char* color = nullptr;
  };
  std::vector<std::size_t> widths() const;
  std::size_t least_taken() const;
  std::string leave_out(std::size_t column);
  void wrap(std::size_t column, std::size_t width);
  std::string text(const Line& line, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::string indent_, gap_;
  std::vector<Line> lines_;
};

}  // namespace pleat
