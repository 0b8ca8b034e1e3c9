#include "pleat/bench/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <ostream>
#include <utility>

#include "pleat/core/bytes.h"
#include "pleat/core/format.h"
#include "pleat/core/text_table.h"

namespace pleat::bench {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[1;32m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

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
  return value_column_as(std::move(title), std::move(name), [scale, digits](double value) {
    const double number = value * scale;
    // Numbers above a thousand are whole: rounding them to three digits would only look odd.
    return std::abs(number) >= 1000 ? fmt::format("{:.0f}", number)
                                    : benchmark::format_significant(number, digits);
  });
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

std::vector<Column> joined(std::vector<Column> columns, const std::vector<Column>& more) {
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

std::vector<bool> fastest(const std::vector<Record>& records, const std::vector<std::string>& competing) {
  std::map<std::string, std::vector<double>> times;  // of those that compute the same
  for (const Record& record : records)
    if (record.time.has_value()) times[label_text(record, competing, "\n")].push_back(record.time->median);
  std::vector<bool> marks;
  for (const Record& record : records) {
    const std::vector<double>& same = times[label_text(record, competing, "\n")];
    marks.push_back(!competing.empty() && record.time.has_value() && same.size() > 1 &&
                    record.time->median <= 1.01 * *std::min_element(same.begin(), same.end()));
  }
  return marks;
}

std::string table(const std::vector<Record>& records, const Layout& layout, bool color) {
  const std::vector<bool> marks = fastest(records, layout.competing);
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<std::string>> lines(records.size() + 1);  // titles first
  for (const Column& column : layout.columns) {
    std::vector<std::string> cells;
    for (const Record& record : records) cells.push_back(column.cell(record));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); }))
      continue;
    columns.push_back({.left = column.is_text});
    lines[0].push_back(column.title);
    for (std::size_t r = 0; r < records.size(); ++r) lines[r + 1].push_back(std::move(cells[r]));
  }
  columns.push_back({.left = true});  // what is longer than any cell comes last

  TextTable text(columns, "  ");
  if (!layout.heading.empty() && !records.empty()) {
    const std::string heading = label_text(records[0], layout.heading, "  ");
    text.add_text(color ? bold + heading + plain : heading);
  }
  text.add(lines[0], color ? dim : nullptr);
  for (std::size_t r = 0; r < records.size(); ++r) {
    const bool failed = !records[r].failure.empty();
    lines[r + 1].push_back(failed ? "not run: " + records[r].failure : marks[r] ? "* fastest" : "");
    text.add(lines[r + 1], !color ? nullptr : failed ? dim : marks[r] ? green : nullptr);
  }
  return text.text();
}

std::string label_text(const Record& record, const std::vector<std::string>& labels, const char* between) {
  std::string text;
  for (const std::string& label : labels)
    if (const std::string& part = record.label(label); !part.empty())
      text += (text.empty() ? "" : between) + part;
  return text;
}

void put(std::ostream& out, const std::string& text) {
  errno = 0;
  out << text << std::flush;
  check<FileError>(out.good(), "cannot write to standard output{}{}", errno != 0 ? ": " : "",
                   errno != 0 ? std::strerror(errno) : "");
}

void Report::set_layout(Layout layout) {
  layout_ = std::move(layout);
  show("");
}

void Report::show(const std::string& text) {
  if (out_ == nullptr) return;
  if (const std::string opening = std::exchange(opening_, {}); !opening.empty()) put(*out_, opening + "\n\n");
  put(*out_, text);
}

void Report::add(const std::vector<Record>& block) {
  if (block.empty()) return;
  keep(block);
  if (out_ != nullptr) show(table(block, layout_, color_) + '\n');
}

void Report::keep(const std::vector<Record>& block) {
  records_.insert(records_.end(), block.begin(), block.end());
}

void Report::say(const std::string& text) { show(text + "\n\n"); }

}  // namespace pleat::bench
