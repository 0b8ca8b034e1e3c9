#include "pleat/bench/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/bytes.h"
#include "pleat/profile/compare.h"

namespace pleat::bench {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[1;32m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t own = benchmark::display_width(text);
  const std::string gap(own < width ? width - own : 0, ' ');
  return left ? text + gap : gap + text;
}

std::string without_end(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Numbers above a thousand stand whole: rounding them to three digits would only look odd.
std::string number_text(double number, int digits) {
  return std::abs(number) >= 1000 ? fmt::format("{:.0f}", number)
                                  : benchmark::format_significant(number, digits);
}

template <class Text>
Column value_column_as(std::string title, std::string name, Text text) {
  return {std::move(title), [name = std::move(name), text](const Record& record) -> std::string {
            const auto value = record.value(name);
            return value.has_value() ? text(*value) : "";
          }};
}

template <class Text>
Column time_column_as(std::string title, Text text) {
  return {std::move(title), [text](const Record& record) -> std::string {
            return record.time.has_value() ? text(*record.time) : "";
          }};
}

}  // namespace

Column label_column(std::string title, std::string name) {
  return {std::move(title), [name = std::move(name)](const Record& record) { return record.label(name); },
          true};
}

Column detail_column(std::string title, std::string name) {
  return {std::move(title), [name = std::move(name)](const Record& record) { return record.detail(name); },
          true};
}

Column value_column(std::string title, std::string name, double scale, int digits) {
  return value_column_as(std::move(title), std::move(name),
                         [scale, digits](double value) { return number_text(value * scale, digits); });
}

Column percent_column(std::string title, std::string name) {
  return value_column_as(std::move(title), std::move(name), [](double value) {
    return fmt::format("{:.{}f} %", 100 * value, value < 0.0995 ? 1 : 0);
  });
}

Column bytes_column(std::string title, std::string name) {
  return value_column_as(std::move(title), std::move(name),
                         [](double value) { return text_of_bytes(static_cast<int64_t>(value)); });
}

Column exponent_column(std::string title, std::string name) {
  return value_column_as(std::move(title), std::move(name),
                         [](double value) { return fmt::format("{:.1e}", value); });
}

Column median_column() {
  return time_column_as("median", [](const Time& time) {
    return benchmark::format_time(time.median) + (time.has_wide_spread() ? " ~" : "  ");
  });
}

Column quartiles_column() {
  return time_column_as("quartiles", [](const Time& time) {
    const benchmark::TimeUnit unit = benchmark::time_unit(time.median);
    return fmt::format("{} to {} {}", benchmark::format_significant(time.lower_quartile / unit.seconds, 4),
                       benchmark::format_significant(time.upper_quartile / unit.seconds, 4), unit.name);
  });
}

Column runs_column() {
  return time_column_as("runs", [](const Time& time) { return fmt::format("{}", time.runs); });
}

Column first_call_column() {
  return time_column_as("first call",
                        [](const Time& time) { return benchmark::format_time(time.first_call, 3); });
}

std::vector<bool> winners(const std::vector<Record>& records, const std::vector<std::string>& race) {
  struct Field {
    int starters = 0;
    double best = std::numeric_limits<double>::infinity();
  };
  std::map<std::string, Field> fields;
  const auto field_of = [&](const Record& record) {
    std::string name;
    for (const std::string& label : race) name += record.label(label) + '\n';
    return name;
  };
  for (const Record& record : records) {
    if (!record.time.has_value()) continue;
    Field& field = fields[field_of(record)];
    ++field.starters;
    field.best = std::min(field.best, record.time->median);
  }
  std::vector<bool> marks;
  for (const Record& record : records) {
    const Field field = fields[field_of(record)];
    marks.push_back(!race.empty() && record.time.has_value() && field.starters > 1 &&
                    record.time->median <= 1.01 * field.best);
  }
  return marks;
}

std::string aligned(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& is_text) {
  std::vector<std::size_t> widths(is_text.size());
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], benchmark::display_width(line[c]));
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c) row += "  " + padded(line[c], widths[c], is_text[c]);
    text += without_end(row) + '\n';
  }
  return text;
}

std::string table(const std::vector<Record>& records, const Layout& layout, bool color) {
  const std::vector<bool> marks = winners(records, layout.race);
  std::vector<std::vector<std::string>> lines(records.size() + 1);
  std::vector<bool> is_text;
  for (const Column& column : layout.columns) {
    std::vector<std::string> cells;
    for (const Record& record : records) cells.push_back(column.cell(record));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); }))
      continue;
    lines[0].push_back(column.title);
    for (std::size_t r = 0; r < records.size(); ++r) lines[r + 1].push_back(std::move(cells[r]));
    is_text.push_back(column.is_text);
  }
  // What is longer than any cell would widen a column for all.
  lines[0].emplace_back();
  for (std::size_t r = 0; r < records.size(); ++r)
    lines[r + 1].push_back(!records[r].failure.empty() ? "not run: " + records[r].failure
                           : marks[r]                  ? "* fastest"
                                                       : "");
  is_text.push_back(true);

  std::string text;
  if (!layout.heading.empty() && !records.empty()) {
    std::string heading;
    for (const std::string& label : layout.heading)
      if (const std::string& part = records[0].label(label); !part.empty())
        heading += (heading.empty() ? "" : "  ") + part;
    text += (color ? bold + heading + plain : heading) + '\n';
  }
  const std::string body = aligned(lines, is_text);
  std::size_t begin = 0;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const std::size_t end = body.find('\n', begin);
    const std::string line = body.substr(begin, end - begin);
    begin = end + 1;
    const char* paint = !color                                      ? nullptr
                        : l == 0 || !records[l - 1].failure.empty() ? dim
                        : marks[l - 1]                              ? green
                                                                    : nullptr;
    text += (paint != nullptr ? paint + line + plain : line) + '\n';
  }
  return text;
}

}  // namespace pleat::bench
