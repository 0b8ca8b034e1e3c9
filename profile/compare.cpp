#include "pleat/profile/compare.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"

namespace pleat::benchmark {
namespace {

constexpr const char* best_color = "\x1b[1;32m";  // bold green
constexpr const char* slow_color = "\x1b[31m";    // red: at least twice the best
constexpr const char* dim_color = "\x1b[2m";
constexpr const char* no_color = "\x1b[0m";

bool same_cell(const Measurement& a, const Measurement& b) {
  return a.label == b.label && a.sub_label == b.sub_label && a.description == b.description &&
         a.device == b.device && a.threads == b.threads && a.cold_cache == b.cold_cache;
}

std::string group_of(const Measurement& m) {
  std::string text = m.device.is_cpu()
                         ? fmt::format("{}, {} thread{}", m.device, m.threads, m.threads == 1 ? "" : "s")
                         : name(m.device);
  return m.cold_cache ? text + ", cold cache" : text;
}

template <class T>
std::size_t index_in(std::vector<T>& list, const T& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) {
    list.push_back(value);
    return list.size() - 1;
  }
  return static_cast<std::size_t>(found - list.begin());
}

/// A number in two parts, so that decimal points stand below each other.
struct Cell {
  std::string whole, fraction, mark;
  const char* color = nullptr;
};

struct Row {
  std::string group, name;
  std::vector<const Measurement*> cells;  // null: not measured
};

/// The table of one label.
class Table {
 public:
  explicit Table(std::string label) : label_(std::move(label)) {}
  const std::string& label() const { return label_; }

  void add(const Measurement& m) {
    const std::size_t column = index_in(columns_, m.description);
    const std::string group = group_of(m);
    auto row = std::find_if(rows_.begin(), rows_.end(),
                            [&](const Row& r) { return r.group == group && r.name == m.sub_label; });
    if (row == rows_.end()) row = rows_.insert(end_of(group), {group, m.sub_label, {}});
    if (row->cells.size() <= column) row->cells.resize(column + 1);
    row->cells[column] = &m;
  }

  std::string text(bool color) const {
    double smallest = std::numeric_limits<double>::infinity();
    bool noisy = false;
    for (const Row& row : rows_)
      for (const Measurement* m : row.cells)
        if (m != nullptr) {
          smallest = std::min(smallest, m->median());
          noisy = noisy || m->has_wide_spread();
        }
    const TimeUnit unit = time_unit(smallest);
    std::vector<std::vector<Cell>> cells;
    for (const Row& row : rows_) cells.push_back(cells_of(row, unit));

    std::vector<std::size_t> wholes(columns_.size()), fractions(columns_.size());
    std::vector<std::string> titles{""};
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      for (const auto& row : cells) {
        wholes[c] = std::max(wholes[c], row[c].whole.size());
        fractions[c] = std::max(fractions[c], row[c].fraction.size());
      }
      // Titles begin where the numbers do.
      titles.push_back(fmt::format("{:<{}}", columns_[c], wholes[c] + fractions[c] + 3));
    }
    std::vector<TextTable::Column> layout(columns_.size() + 1);
    layout[0].left = true;
    TextTable table(layout, "", " | ");
    if (!label_.empty()) table.add_text(label_);
    table.add(titles);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (r == 0 || rows_[r].group != rows_[r - 1].group) table.add_text(rows_[r].group);
      std::vector<std::string> line{"  " + rows_[r].name};
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const Cell& cell = cells[r][c];
        const std::string number =
            fmt::format("{:>{}}{:<{}} {:<2}", cell.whole, wholes[c], cell.fraction, fractions[c], cell.mark);
        line.push_back(color && cell.color != nullptr ? cell.color + number + no_color : number);
      }
      table.add(std::move(line));
    }
    const std::string legend = fmt::format(
        "Medians in {}; * best of its row{}", unit.name,
        noisy ? "; ~ quartiles more than 10 % of the median apart: other work may have disturbed it" : "");
    return table.text() + (color ? dim_color + legend + no_color : legend) + '\n';
  }

 private:
  std::vector<Row>::iterator end_of(const std::string& group) {
    auto last = std::find_if(rows_.rbegin(), rows_.rend(), [&](const Row& r) { return r.group == group; });
    return last == rows_.rend() ? rows_.end() : last.base();
  }

  std::vector<Cell> cells_of(const Row& row, TimeUnit unit) const {
    double best = std::numeric_limits<double>::infinity();
    std::size_t measured = 0;
    for (const Measurement* m : row.cells)
      if (m != nullptr) best = std::min(best, m->median()), ++measured;
    std::vector<Cell> cells(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      Cell& cell = cells[c];
      const Measurement* m = c < row.cells.size() ? row.cells[c] : nullptr;
      if (m == nullptr) {
        cell.whole = "-";
        continue;
      }
      const double median = m->median();
      // Below two digits a table is hard to read, however little they mean.
      const std::string number =
          format_significant(median / unit.seconds, std::max(2, m->significant_digits()));
      const std::size_t point = std::min(number.find('.'), number.size());
      cell.whole = number.substr(0, point);
      cell.fraction = number.substr(point);
      // Alone in its row nothing is best.
      if (measured > 1 && median <= 1.01 * best) cell.mark += '*', cell.color = best_color;
      if (measured > 1 && median >= 2 * best) cell.color = slow_color;
      if (m->has_wide_spread()) cell.mark += '~';
    }
    return cells;
  }

  std::string label_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

}  // namespace

bool may_color(int descriptor) {
  const char* value = std::getenv("NO_COLOR");
  return (value == nullptr || *value == '\0') && isatty(descriptor) != 0;
}

std::size_t display_width(const std::string& text) { return pleat::display_width(text); }

Compare::Compare(std::vector<Measurement> measurements) {
  for (const Measurement& m : measurements) add(m);
}

void Compare::add(const Measurement& measurement) {
  check<ValueError>(!measurement.times.empty(), "compare: a measurement must have times, got none");
  for (Measurement& known : measurements_) {
    if (!same_cell(known, measurement)) continue;
    known.times.insert(known.times.end(), measurement.times.begin(), measurement.times.end());
    known.wall_times.insert(known.wall_times.end(), measurement.wall_times.begin(),
                            measurement.wall_times.end());
    return;
  }
  measurements_.push_back(measurement);
}

std::string Compare::table(CompareOptions options) const {
  const bool color = options.color == Color::always || (options.color == Color::automatic && may_color(1));
  std::vector<Table> tables;
  for (const Measurement& m : measurements_) {
    auto table =
        std::find_if(tables.begin(), tables.end(), [&](const Table& t) { return t.label() == m.label; });
    if (table == tables.end()) table = tables.insert(tables.end(), Table(m.label));
    table->add(m);
  }
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + table.text(color);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Compare& compare) {
  const bool color = (&out == &std::cout && may_color(1)) || (&out == &std::cerr && may_color(2));
  return out << compare.table({.color = color ? Color::always : Color::never});
}

}  // namespace pleat::benchmark
