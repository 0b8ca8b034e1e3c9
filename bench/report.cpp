// Records as tables: which columns there are, which go where a page is narrow, and what is the fastest.
#include "pleat/bench/report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"

namespace pleat::bench {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[1;32m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

/// Numbers above a thousand are whole: rounding them to few digits would only look odd.
template <int digits>
std::string significant(double number) {
  return std::abs(number) >= 1000 ? fmt::format("{:.0f}", number)
                                  : benchmark::format_significant(number, digits);
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0); }
std::string exponential(double error) { return fmt::format("{:.1e}", error); }
std::string bytes(double number) { return text_of_bytes(static_cast<int64_t>(number)); }

using benchmark::Measurement;
std::string median(const Measurement& time) {
  return benchmark::format_time(time.median()) + (time.has_wide_spread() ? " ~" : "  ");
}
std::string quartiles(const Measurement& time) {
  const benchmark::TimeUnit unit = benchmark::time_unit(time.median());
  return fmt::format("{} to {} {}", benchmark::format_significant(time.lower_quartile() / unit.seconds, 4),
                     benchmark::format_significant(time.upper_quartile() / unit.seconds, 4), unit.name);
}
std::string runs(const Measurement& time) { return std::to_string(time.runs()); }
std::string first_call(const Measurement& time) { return benchmark::format_time(time.first_call, 3); }

/// Of a time, of the value `source`, or of the label `source`.
struct Column {
  std::string name, title;
  std::string source = name;
  std::string (*of_time)(const Measurement&) = nullptr;
  std::string (*of_value)(double) = nullptr;

  bool is_text() const { return of_time == nullptr && of_value == nullptr; }
  /// "" where there is nothing to say.
  std::string cell(const Record& record) const {
    if (of_time != nullptr) return record.time ? of_time(*record.time) : "";
    if (is_text()) return record.label(source);
    const auto number = record.value(source);
    return number ? of_value(*number) : "";
  }
};

/// Where a page is narrow: which columns go, in this order.
constexpr std::array dispensable{"runs",          "first_call",    "quartiles",       "gflops_valid",
                                 "share_of_copy", "forward_bytes", "workspace_bytes", "gbytes",
                                 "error",         "share_of_peak"};

/// A label or a detail is a column under its own name; what else tables can have is listed here.
Column column(const std::string& name) {
  static const std::vector<Column> all{
      {"dtype", "type"},
      {.name = "median", .title = "median", .of_time = median},
      {"quartiles", "quartiles", {}, quartiles},
      {"runs", "runs", {}, runs},
      {"first_call", "first call", {}, first_call},
      {.name = "share", .title = "share", .of_value = percent},
      {.name = "gflops", .title = "GFLOP/s", .of_value = significant<3>},
      {.name = "gflops_valid", .title = "valid", .of_value = significant<3>},
      {.name = "share_of_peak", .title = "of peak", .of_value = percent},
      {.name = "gbytes", .title = "GB/s", .of_value = significant<3>},
      {.name = "share_of_copy", .title = "of copy", .of_value = percent},
      {.name = "images_per_s", .title = "images/s", .of_value = significant<4>},
      {.name = "workspace_bytes", .title = "workspace", .of_value = bytes},
      {.name = "forward_bytes",
       .title = "workspace of forward",
       .source = "workspace_bytes",
       .of_value = bytes},
      {.name = "error", .title = "error", .of_value = exponential},
      {"bad_error", "", "error"},
      {"beside", "beside the first"}};
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Column& one) { return one.name == name; });
  return found != all.end() ? *found : Column{name, name};
}

}  // namespace

std::vector<bool> fastest(const std::vector<Record>& records, const std::vector<std::string>& competing) {
  std::map<std::string, std::vector<double>> times;  // of those that compute the same
  for (const Record& record : records)
    if (record.time.has_value()) times[label_text(record, competing, "\n")].push_back(record.time->median());
  std::vector<bool> marks;
  for (const Record& record : records) {
    const std::vector<double>& same = times[label_text(record, competing, "\n")];
    marks.push_back(!competing.empty() && record.time.has_value() && same.size() > 1 &&
                    record.time->median() <= 1.01 * *std::min_element(same.begin(), same.end()));
  }
  return marks;
}

std::string table(const std::vector<Record>& records, const Layout& layout, bool color,
                  std::set<std::string>* left_out) {
  const std::vector<bool> marks = fastest(records, layout.competing);
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<std::string>> lines(records.size() + 1);  // titles first
  for (const std::string& name : layout.columns) {
    const Column shown = column(name);
    std::vector<std::string> cells;
    for (const Record& record : records) cells.push_back(shown.cell(record));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& text) { return text.empty(); }))
      continue;
    const auto place = std::find(dispensable.rbegin(), dispensable.rend(), name);
    columns.push_back({.left = shown.is_text(),
                       .importance = static_cast<int>(dispensable.rend() - place),
                       .wraps = shown.is_text() && name != "beside" ? 16U : 0U});
    lines[0].push_back(shown.title);
    for (std::size_t r = 0; r < records.size(); ++r) lines[r + 1].push_back(std::move(cells[r]));
  }
  columns.push_back({.left = true, .wraps = 24});  // what is longer than any cell comes last

  const int width = page_width();
  TextTable table(columns, "  ");
  if (!layout.heading.empty() && !records.empty()) {
    const std::string heading = wrapped(label_text(records[0], layout.heading, "  "), width);
    table.add_text(color ? bold + heading + plain : heading);
  }
  table.add(lines[0], color ? dim : nullptr);
  for (std::size_t r = 0; r < records.size(); ++r) {
    const bool failed = !records[r].failure.empty();
    lines[r + 1].push_back(failed ? "not run: " + records[r].failure : marks[r] ? "* fastest" : "");
    table.add(lines[r + 1], !color ? nullptr : failed ? dim : marks[r] ? green : nullptr);
  }
  for (const std::string& title : table.fit(static_cast<std::size_t>(width)))
    if (left_out != nullptr) left_out->insert(title);
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
  if (out_ == nullptr) return;
  const std::size_t known = left_out_.size();
  show(table(block, layout_, color_, &left_out_) + '\n');
  if (left_out_.size() > known)
    say(fmt::format("No room for: {}. They are in what --json and --csv write.", fmt::join(left_out_, ", ")));
}

void Report::keep(const std::vector<Record>& block) {
  records_.insert(records_.end(), block.begin(), block.end());
}

void Report::say(const std::string& text) { show(wrapped(text, page_width()) + "\n\n"); }

}  // namespace pleat::bench
