#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"
#include "pleat/profile/key_averages.h"

namespace pleat::profile {
namespace {

constexpr std::size_t column_width = 12;
/// Where there is no room for all columns: which go, in this order.
constexpr std::array dispensable{"CUDA time avg", "CPU time avg", "CPU total %",    "CUDA Mem",
                                 "CPU Mem",       "Format",       "Implementation", "CUDA total",
                                 "CPU total",     "Kernel",       "Self CUDA Mem",  "Self CPU Mem",
                                 "# of Calls",    "Self CUDA %",  "Self CPU %"};
/// By SortBy: what stays.
constexpr std::array sorted_by{
    "",        "Name",          "Self CPU", "CPU total",  "Self CUDA", "CUDA total", "Self CPU Mem",
    "CPU Mem", "Self CUDA Mem", "CUDA Mem", "# of Calls", ""};

std::string text_of_time(int64_t ns) {
  const auto t = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f}s", t / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.3f}ms", t / 1e6);
  return fmt::format("{:.3f}us", t / 1e3);
}

std::string text_of_memory(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (std::abs(b) >= 1 << 30) return fmt::format("{:.2f} GiB", b / (1 << 30));
  if (std::abs(b) >= 1 << 20) return fmt::format("{:.2f} MiB", b / (1 << 20));
  if (std::abs(b) >= 1 << 10) return fmt::format("{:.2f} KiB", b / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string text_of_share(int64_t part, int64_t whole) {
  if (whole == 0) return "--";
  return fmt::format("{:.2f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

/// The unit of a column of operations: the largest in which the smallest of them still shows.
struct FlopsUnit {
  double size = 1;
  const char* name = "FLOPs";
};

FlopsUnit flops_unit(const std::vector<KeyAverage>& rows) {
  constexpr std::array<FlopsUnit, 6> units{
      {{1, "FLOPs"}, {1e3, "KFLOPs"}, {1e6, "MFLOPs"}, {1e9, "GFLOPs"}, {1e12, "TFLOPs"}, {1e15, "PFLOPs"}}};
  double smallest = 0;
  for (const KeyAverage& row : rows)
    if (row.flops > 0 && (smallest == 0 || row.flops < smallest)) smallest = row.flops;
  FlopsUnit best = units[0];
  for (const FlopsUnit& unit : units)
    if (smallest >= 0.1 * unit.size) best = unit;
  return best;
}

struct Column {
  std::string title;
  std::function<std::string(const KeyAverage&)> cell;
  std::size_t most = column_width;  ///< characters, beyond which a cell is cut
  bool words = false;               ///< as wide as its content
};

/// Characters that would break the lines of a table become '?'.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  text.resize(most > 3 ? most - 3 : most);
  // Not in the middle of a character.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  return most > 3 ? text + "..." : text;
}

/// Of a column of words: less where the page is narrow.
std::size_t within(std::size_t most, const TableOptions& options) {
  return options.width > 0 ? std::min(most, static_cast<std::size_t>(options.width) / 3) : most;
}

std::vector<Column> columns_of(const KeyAverages& all, const TableOptions& options) {
  using Row = const KeyAverage&;
  const auto time = [](int64_t KeyAverage::*field) {
    return [field](Row row) { return text_of_time(row.*field); };
  };
  const auto memory = [](int64_t KeyAverage::*field) {
    return [field](Row row) { return text_of_memory(row.*field); };
  };
  const auto share = [](int64_t KeyAverage::*field, int64_t whole) {
    return [field, whole](Row row) { return text_of_share(row.*field, whole); };
  };
  const auto average = [](int64_t KeyAverage::*field) {
    return [field](Row row) { return text_of_time(row.*field / std::max<int64_t>(1, row.calls)); };
  };
  std::vector<Column> columns{
      {"Name", [](Row row) { return printable(row.name); }, within(options.max_name_width, options), true},
      {"Self CPU %", share(&KeyAverage::self_cpu, all.cpu)},
      {"Self CPU", time(&KeyAverage::self_cpu)},
      {"CPU total %", share(&KeyAverage::cpu, all.cpu)},
      {"CPU total", time(&KeyAverage::cpu)},
      {"CPU time avg", average(&KeyAverage::cpu)}};
  if (all.with_cuda) {
    columns.push_back({"Self CUDA", time(&KeyAverage::self_cuda)});
    columns.push_back({"Self CUDA %", share(&KeyAverage::self_cuda, all.cuda)});
    columns.push_back({"CUDA total", time(&KeyAverage::cuda)});
    columns.push_back({"CUDA time avg", average(&KeyAverage::cuda), 13});
  }
  if (all.with_memory) {
    columns.push_back({"CPU Mem", memory(&KeyAverage::cpu_memory)});
    columns.push_back({"Self CPU Mem", memory(&KeyAverage::self_cpu_memory)});
    if (all.with_cuda) {
      columns.push_back({"CUDA Mem", memory(&KeyAverage::cuda_memory)});
      columns.push_back({"Self CUDA Mem", memory(&KeyAverage::self_cuda_memory), 13});
    }
  }
  columns.push_back({"# of Calls", [](Row row) { return std::to_string(row.calls); }});
  columns.push_back({"Implementation", [](Row row) { return row.implementation; }, 30, true});
  columns.push_back({"Format", [](Row row) { return row.format; }, 30, true});
  if (all.with_cuda)
    columns.push_back({"Kernel", [](Row row) { return printable(row.kernel); },
                       within(options.max_name_width, options), true});
  if (all.with_modules)
    columns.push_back({"Module", [](Row row) { return printable(row.module); },
                       within(options.max_name_width, options), true});
  if (all.with_shapes)
    columns.push_back({"Input Shapes", [](Row row) { return row.shapes; },
                       within(options.max_shapes_width, options), true});
  if (all.with_flops) {
    const FlopsUnit unit = flops_unit(all.rows);
    columns.push_back({std::string("Total ") + unit.name,
                       [unit](Row row) {
                         return row.flops > 0 ? fmt::format("{:.3f}", row.flops / unit.size)
                                              : std::string("--");
                       },
                       13});
  }
  return columns;
}

/// The rows to print, in order.
std::vector<const KeyAverage*> chosen_rows(const KeyAverages& all, const TableOptions& options) {
  std::vector<const KeyAverage*> rows;
  for (const KeyAverage& row : all.rows) rows.push_back(&row);
  const SortBy automatic = all.cuda > 0 ? SortBy::self_cuda : SortBy::self_cpu;
  const SortBy by = options.sort_by == SortBy::automatic ? automatic : options.sort_by;
  const auto key = [by](const KeyAverage& row) -> double {
    switch (by) {
      case SortBy::automatic:
      case SortBy::name:
        return 0;
      case SortBy::self_cpu:
        return static_cast<double>(row.self_cpu);
      case SortBy::cpu:
        return static_cast<double>(row.cpu);
      case SortBy::self_cuda:
        return static_cast<double>(row.self_cuda);
      case SortBy::cuda:
        return static_cast<double>(row.cuda);
      case SortBy::self_cpu_memory:
        return static_cast<double>(row.self_cpu_memory);
      case SortBy::cpu_memory:
        return static_cast<double>(row.cpu_memory);
      case SortBy::self_cuda_memory:
        return static_cast<double>(row.self_cuda_memory);
      case SortBy::cuda_memory:
        return static_cast<double>(row.cuda_memory);
      case SortBy::calls:
        return static_cast<double>(row.calls);
      case SortBy::flops:
        return row.flops;
    }
    return 0;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const KeyAverage* a, const KeyAverage* b) {
    return by == SortBy::name ? a->name < b->name : key(*a) > key(*b);
  });
  rows.resize(std::min(rows.size(), options.row_limit));
  return rows;
}

}  // namespace

std::string KeyAverages::table(TableOptions options) const {
  const std::vector<const KeyAverage*> chosen = chosen_rows(*this, options);
  std::vector<Column> columns = columns_of(*this, options);
  // Columns of words that say nothing are left out.
  std::erase_if(columns, [&](const Column& column) {
    const auto silent = [&](const KeyAverage* row) { return column.cell(*row).empty(); };
    return column.words && column.title != "Name" && std::all_of(chosen.begin(), chosen.end(), silent);
  });

  std::vector<TextTable::Column> layout;
  std::vector<std::string> titles;
  for (const Column& column : columns) {
    const auto place = std::find(dispensable.rbegin(), dispensable.rend(), column.title);
    const bool stays = column.title == sorted_by.at(static_cast<std::size_t>(options.sort_by));
    layout.push_back({.least = column.words ? 0 : column_width,
                      .importance = stays ? 0 : static_cast<int>(dispensable.rend() - place)});
    titles.push_back(column.title);
  }
  TextTable lines(layout);
  for (const std::string& warning : warnings) lines.add_text("warning: " + printable(warning));
  lines.add_rule();
  lines.add(titles);
  lines.add_rule();
  for (const KeyAverage* row : chosen) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(cut(column.cell(*row), column.most));
    lines.add(std::move(cells));
  }
  lines.add_rule();
  std::vector<std::string> left_out;
  if (options.width > 0) left_out = lines.fit(static_cast<std::size_t>(options.width));
  std::string text = lines.text();
  if (!left_out.empty())
    text += wrapped(fmt::format("No room for: {} (.width = 0 shows all)\n", fmt::join(left_out, ", ")),
                    options.width);
  if (chosen.size() < rows.size()) text += fmt::format("{} of {} rows\n", chosen.size(), rows.size());
  text += "Self CPU time total: " + text_of_time(cpu) + '\n';
  if (with_cuda) text += "Self CUDA time total: " + text_of_time(cuda) + '\n';
  return text;
}

std::ostream& operator<<(std::ostream& out, const KeyAverages& averages) { return out << averages.table(); }

}  // namespace pleat::profile
