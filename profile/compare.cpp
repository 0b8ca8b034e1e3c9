// Measurements as tables, one for each label. A number is a cell of two parts, so that decimal points align.
#include "pleat/profile/compare.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/system/console.h"

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

using Measurements = std::vector<const Measurement*>;  // null: not measured

/// What all of them are called by, each once, in the order in which they came.
template <class TextOf>
std::vector<std::string> distinct(const Measurements& all, const TextOf& text_of) {
  std::vector<std::string> texts;
  for (const Measurement* m : all)
    if (std::string text = text_of(*m); std::ranges::find(texts, text) == texts.end())
      texts.push_back(std::move(text));
  return texts;
}

template <class Is>
Measurements those(const Measurements& all, const Is& is) {
  Measurements found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](const Measurement* m) { return is(*m); });
  return found;
}

/// A number in two parts, so that decimal points stand below each other.
struct Cell {
  std::string whole, fraction, mark;
  const char* color = nullptr;
};

std::vector<Cell> cells_of(const Measurements& row, TimeUnit unit) {
  double best = std::numeric_limits<double>::infinity();
  std::size_t measured = 0;
  for (const Measurement* m : row)
    if (m != nullptr) best = std::min(best, m->median()), ++measured;
  std::vector<Cell> cells;
  for (const Measurement* m : row) {
    Cell& cell = cells.emplace_back();
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

/// The table of one label.
std::string table_of(const std::string& label, const Measurements& all, bool color) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Measurement* m : all) smallest = std::min(smallest, m->median());
  const TimeUnit unit = time_unit(smallest);
  const std::vector<std::string> columns = distinct(all, [](const auto& m) { return m.description; });
  struct Row {
    std::string group, name;
    std::vector<Cell> cells;
  };
  std::vector<Row> rows;
  for (const std::string& group : distinct(all, group_of)) {
    const Measurements in_group = those(all, [&](const auto& m) { return group_of(m) == group; });
    for (const std::string& name : distinct(in_group, [](const auto& m) { return m.sub_label; })) {
      Measurements row;
      for (const std::string& column : columns) {
        const Measurements found =
            those(in_group, [&](const auto& m) { return m.sub_label == name && m.description == column; });
        row.push_back(found.empty() ? nullptr : found.back());
      }
      rows.push_back({group, name, cells_of(row, unit)});
    }
  }

  std::vector<std::size_t> wholes(columns.size()), fractions(columns.size());
  std::vector<std::string> titles{""};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (const Row& row : rows) {
      wholes[c] = std::max(wholes[c], row.cells[c].whole.size());
      fractions[c] = std::max(fractions[c], row.cells[c].fraction.size());
    }
    // Titles begin where the numbers do.
    titles.push_back(fmt::format("{:<{}}", columns[c], wholes[c] + fractions[c] + 3));
  }
  std::vector<TextTable::Column> layout(columns.size() + 1);
  layout[0].left = true;
  TextTable table(layout, "", " | ");
  if (!label.empty()) table.add_text(label);
  table.add(titles);
  for (const Row& row : rows) {
    if (&row == rows.data() || row.group != (&row - 1)->group) table.add_text(row.group);
    std::vector<std::string> line{"  " + row.name};
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const Cell& cell = row.cells[c];
      const std::string number =
          fmt::format("{:>{}}{:<{}} {:<2}", cell.whole, wholes[c], cell.fraction, fractions[c], cell.mark);
      line.push_back(color && cell.color != nullptr ? cell.color + number + no_color : number);
    }
    table.add(std::move(line));
  }
  const bool noisy = std::ranges::any_of(all, [](const Measurement* m) { return m->has_wide_spread(); });
  const std::string legend = fmt::format(
      "Medians in {}; * best of its row{}", unit.name,
      noisy ? "; ~ quartiles more than 10 % of the median apart: other work may have disturbed it" : "");
  return table.text() + (color ? dim_color + legend + no_color : legend) + '\n';
}

}  // namespace

bool may_color(int descriptor) {
  const char* value = std::getenv("NO_COLOR");
  return (value == nullptr || *value == '\0') && system::is_terminal(descriptor);
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
  Measurements all;
  for (const Measurement& m : measurements_) all.push_back(&m);
  std::string text;
  for (const std::string& label : distinct(all, [](const auto& m) { return m.label; }))
    text += (text.empty() ? "" : "\n") +
            table_of(label, those(all, [&](const auto& m) { return m.label == label; }), color);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Compare& compare) {
  const bool color = (&out == &std::cout && may_color(1)) || (&out == &std::cerr && may_color(2));
  return out << compare.table({.color = color ? Color::always : Color::never});
}

}  // namespace pleat::benchmark
