#include "pleat/bench/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <utility>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"

namespace pleat::bench {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[1;32m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

using Cell = std::function<std::string(const Record&)>;  ///< "" where there is nothing to say

/// Of a label or a detail.
Cell text(const std::string& name) {
  return [name](const Record& record) {
    return record.label(name).empty() ? record.detail(name) : record.label(name);
  };
}

template <class Text>
Cell value(const char* name, Text text) {
  return [name, text](const Record& record) -> std::string {
    const auto number = record.value(name);
    return number.has_value() ? text(*number) : "";
  };
}

template <class Text>
Cell time(Text text) {
  return [text](const Record& record) -> std::string {
    return record.time.has_value() ? text(*record.time) : "";
  };
}

template <int digits, int scale = 1>
std::string significant(double number) {
  // Numbers above a thousand are whole: rounding them to three digits would only look odd.
  return std::abs(number * scale) >= 1000 ? fmt::format("{:.0f}", number * scale)
                                          : benchmark::format_significant(number * scale, digits);
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0); }
std::string exponential(double error) { return fmt::format("{:.1e}", error); }
std::string bytes(double number) { return text_of_bytes(static_cast<int64_t>(number)); }

std::string quartiles(const Time& time) {
  const benchmark::TimeUnit unit = benchmark::time_unit(time.median);
  return fmt::format("{} to {} {}", benchmark::format_significant(time.lower_quartile / unit.seconds, 4),
                     benchmark::format_significant(time.upper_quartile / unit.seconds, 4), unit.name);
}

struct Column {
  std::string name, title;
  Cell cell;
  bool is_text = false;  ///< aligned left; numbers are aligned right
};

/// A label or a detail is a column under its own name; what else tables can have is listed here.
Column column(const std::string& name) {
  static const std::vector<Column> all{
      {"ceiling", "ceiling", text("problem"), true},
      {"dtype", "type", text("dtype"), true},
      {"median", "median", time([](const Time& time) {
         return benchmark::format_time(time.median) + (time.has_wide_spread() ? " ~" : "  ");
       })},
      {"quartiles", "quartiles", time(quartiles)},
      {"runs", "runs", time([](const Time& time) { return std::to_string(time.runs); })},
      {"first_call", "first call",
       time([](const Time& time) { return benchmark::format_time(time.first_call, 3); })},
      {"share", "share", value("share", percent)},
      {"gflops", "GFLOP/s", value("gflops", significant<3>)},
      {"gflops_valid", "valid", value("gflops_valid", significant<3>)},
      {"share_of_peak", "of peak", value("share_of_peak", percent)},
      {"gbytes", "GB/s", value("gbytes", significant<3>)},
      {"share_of_copy", "of copy", value("share_of_copy", percent)},
      {"peak_gflops", "GFLOP/s", value("gflops", significant<4>)},
      {"peak_gbytes", "GB/s", value("gbytes", significant<4>)},
      {"images_per_s", "images/s", value("images_per_s", significant<4>)},
      {"stopwatch", "stopwatch ms", value("stopwatch", significant<4, 1000>)},
      {"ratio", "timer/stopwatch", value("ratio", significant<4>)},
      {"workspace_bytes", "workspace", value("workspace_bytes", bytes)},
      {"forward_bytes", "workspace of forward", value("workspace_bytes", bytes)},
      {"error", "error", value("error", exponential)},
      {"bad_error", "", text("error"), true},
      {"how", "measured by", text("how"), true}};
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Column& one) { return one.name == name; });
  return found != all.end() ? *found : Column{name, name, text(name), true};
}

}  // namespace

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
  for (const std::string& name : layout.columns) {
    const auto [key, title, cell, is_text] = column(name);
    std::vector<std::string> cells;
    for (const Record& record : records) cells.push_back(cell(record));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& text) { return text.empty(); }))
      continue;
    columns.push_back({.left = is_text});
    lines[0].push_back(title);
    for (std::size_t r = 0; r < records.size(); ++r) lines[r + 1].push_back(std::move(cells[r]));
  }
  columns.push_back({.left = true});  // what is longer than any cell comes last

  TextTable table(columns, "  ");
  if (!layout.heading.empty() && !records.empty()) {
    const std::string heading = label_text(records[0], layout.heading, "  ");
    table.add_text(color ? bold + heading + plain : heading);
  }
  table.add(lines[0], color ? dim : nullptr);
  for (std::size_t r = 0; r < records.size(); ++r) {
    const bool failed = !records[r].failure.empty();
    lines[r + 1].push_back(failed ? "not run: " + records[r].failure : marks[r] ? "* fastest" : "");
    table.add(lines[r + 1], !color ? nullptr : failed ? dim : marks[r] ? green : nullptr);
  }
  return table.text();
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
