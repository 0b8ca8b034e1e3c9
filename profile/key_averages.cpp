// Rows of a profile: ranges of one name added up, and the table of them. A row's figures are columns of one
// list, by which the table is made, sorted and shortened.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"
#include "pleat/profile/profile.h"

namespace pleat::profile {
namespace {

using Words = std::set<std::string>;

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string shapes_text(const Event& event) {
  std::vector<std::string> shapes;
  for (const TensorInfo& input : event.inputs) shapes.push_back(input.defined ? to_string(input.shape) : "-");
  return fmt::format("{}", fmt::join(shapes, " "));
}

/// Formats of inputs with 3 to 5 dimensions; other tensors have none.
Words formats(const Event& event) {
  Words all;
  for (const TensorInfo& input : event.inputs)
    if (input.defined && input.shape.size() >= 3 && input.shape.size() <= 5) all.insert(name(input.format));
  return all;
}

using Key = std::tuple<std::string, RangeKind, std::string, std::string, std::string, std::string>;

Key key_of(const Event& event, GroupBy by) {
  return {event.kind == RangeKind::step ? "ProfilerStep*" : event.name,
          event.kind,
          includes(by, GroupBy::shape) ? shapes_text(event) : "",
          includes(by, GroupBy::module) ? event.module : "",
          includes(by, GroupBy::implementation) ? event.implementation : "",
          includes(by, GroupBy::format) ? joined(formats(event)) : ""};
}

/// What an event and all events inside it add up to.
struct Totals {
  int64_t cuda = 0, cpu_memory = 0, cuda_memory = 0;

  void add(const Totals& more) {
    cuda += more.cuda, cpu_memory += more.cpu_memory, cuda_memory += more.cuda_memory;
  }
};

/// Children come after their parents, so one pass from the end is enough.
std::vector<Totals> totals_of(const Profile& profile) {
  std::vector<Totals> totals(profile.events.size());
  for (std::size_t i = profile.events.size(); i-- > 0;) {
    const Event& event = profile.events[i];
    totals[i].add({self_device_time(profile, i), event.self_cpu_memory, event.self_cuda_memory});
    if (event.parent != none) totals[event.parent].add(totals[i]);
  }
  return totals;
}

/// A row for GPU activities outside of any range.
void add_row_of_strays(const Profile& profile, KeyAverages& averages) {
  KeyAverage row{.name = "(outside of any range)", .kind = RangeKind::user};
  for (const DeviceActivity& activity : profile.activities)
    if (activity.event == none) ++row.calls, row.self_cuda += activity.duration();
  row.cuda = row.self_cuda;
  if (row.calls > 0) averages.rows.push_back(std::move(row));
}

// --- the table

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

/// A column of numbers.
struct Figure {
  enum class Unit : unsigned char { time, share, average, memory, count };

  const char* title;
  int64_t KeyAverage::*field;
  Unit unit;
  SortBy sorts = SortBy::automatic;  ///< the order that it shows
  int importance =
      0;  ///< where there is no room for all columns, the one with the least goes first; 0: stays
  bool of_cuda = false, of_memory = false;

  bool is_in(const KeyAverages& all) const {
    return (!of_cuda || all.with_cuda) && (!of_memory || all.with_memory);
  }
  std::string text(const KeyAverage& row, const KeyAverages& all) const {
    const int64_t value = row.*field;
    switch (unit) {
      case Unit::time:
        return text_of_time(value);
      case Unit::share:
        return text_of_share(value, of_cuda ? all.cuda : all.cpu);
      case Unit::average:
        return text_of_time(value / std::max<int64_t>(1, row.calls));
      case Unit::memory:
        return text_of_memory(value);
      case Unit::count:
        break;
    }
    return std::to_string(value);
  }
};

constexpr auto unsorted = SortBy::automatic;
using enum Figure::Unit;
constexpr Figure figures[] = {
    {"Self CPU %", &KeyAverage::self_cpu, share, unsorted, 15},
    {"Self CPU", &KeyAverage::self_cpu, time, SortBy::self_cpu},
    {"CPU total %", &KeyAverage::cpu, share, unsorted, 3},
    {"CPU total", &KeyAverage::cpu, time, SortBy::cpu, 9},
    {"CPU time avg", &KeyAverage::cpu, average, unsorted, 2},
    {"Self CUDA", &KeyAverage::self_cuda, time, SortBy::self_cuda, 0, true},
    {"Self CUDA %", &KeyAverage::self_cuda, share, unsorted, 14, true},
    {"CUDA total", &KeyAverage::cuda, time, SortBy::cuda, 8, true},
    {"CUDA time avg", &KeyAverage::cuda, average, unsorted, 1, true},
    {"CPU Mem", &KeyAverage::cpu_memory, memory, SortBy::cpu_memory, 5, false, true},
    {"Self CPU Mem", &KeyAverage::self_cpu_memory, memory, SortBy::self_cpu_memory, 12, false, true},
    {"CUDA Mem", &KeyAverage::cuda_memory, memory, SortBy::cuda_memory, 4, true, true},
    {"Self CUDA Mem", &KeyAverage::self_cuda_memory, memory, SortBy::self_cuda_memory, 11, true, true},
    {"# of Calls", &KeyAverage::calls, count, SortBy::calls, 13}};

/// The unit of a column of operations: the largest in which the smallest of them still shows.
std::pair<double, const char*> flops_unit(const std::vector<KeyAverage>& rows) {
  double smallest = 0;
  for (const KeyAverage& row : rows)
    if (row.flops > 0 && (smallest == 0 || row.flops < smallest)) smallest = row.flops;
  std::pair<double, const char*> best{1, "FLOPs"};
  for (const auto& unit :
       {std::pair{1e3, "KFLOPs"}, {1e6, "MFLOPs"}, {1e9, "GFLOPs"}, {1e12, "TFLOPs"}, {1e15, "PFLOPs"}})
    if (smallest >= 0.1 * unit.first) best = unit;
  return best;
}

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

struct Column {
  std::string title;
  std::function<std::string(const KeyAverage&)> cell;
  TextTable::Column layout;
};

std::vector<Column> columns_of(const KeyAverages& all, const TableOptions& options,
                               const std::vector<const KeyAverage*>& rows) {
  constexpr std::size_t least = 12;  // width of a column of numbers
  std::vector<Column> columns;
  // Less of a text where the page is narrow.
  const auto within = [&](std::size_t most) {
    return options.width > 0 ? std::min(most, static_cast<std::size_t>(options.width) / 3) : most;
  };
  const auto add_words = [&](const char* title, std::string KeyAverage::*field, std::size_t most,
                             int importance = 0) {
    // Columns of words that say nothing are left out.
    if (field != &KeyAverage::name &&
        std::ranges::all_of(rows, [=](const KeyAverage* row) { return (row->*field).empty(); }))
      return;
    columns.push_back({title,
                       [=](const KeyAverage& row) { return cut(printable(row.*field), most); },
                       {.importance = importance}});
  };
  add_words("Name", &KeyAverage::name, within(options.max_name_width));
  for (const Figure& figure : figures)
    if (figure.is_in(all))
      columns.push_back(
          {figure.title,
           [&](const KeyAverage& row) { return figure.text(row, all); },
           {.least = least,
            .importance =
                figure.sorts != unsorted && figure.sorts == options.sort_by ? 0 : figure.importance}});
  add_words("Implementation", &KeyAverage::implementation, 30, 7);
  add_words("Format", &KeyAverage::format, 30, 6);
  if (all.with_cuda) add_words("Kernel", &KeyAverage::kernel, within(options.max_name_width), 10);
  if (all.with_modules) add_words("Module", &KeyAverage::module, within(options.max_name_width));
  if (all.with_shapes) add_words("Input Shapes", &KeyAverage::shapes, within(options.max_shapes_width));
  if (all.with_flops) {
    const auto [size, name] = flops_unit(all.rows);
    columns.push_back({std::string("Total ") + name,
                       [size = size](const KeyAverage& row) {
                         return row.flops > 0 ? fmt::format("{:.3f}", row.flops / size) : std::string("--");
                       },
                       {.least = least}});
  }
  return columns;
}

/// The rows to print, in order.
std::vector<const KeyAverage*> chosen_rows(const KeyAverages& all, const TableOptions& options) {
  std::vector<const KeyAverage*> rows;
  for (const KeyAverage& row : all.rows) rows.push_back(&row);
  const SortBy automatic = all.cuda > 0 ? SortBy::self_cuda : SortBy::self_cpu;
  const SortBy by = options.sort_by == SortBy::automatic ? automatic : options.sort_by;
  const Figure* const figure =
      std::ranges::find_if(figures, [by](const Figure& one) { return one.sorts == by; });
  const auto key = [&](const KeyAverage& row) {
    return by == SortBy::flops ? row.flops : static_cast<double>(row.*figure->field);
  };
  std::ranges::stable_sort(rows, [&](const KeyAverage* a, const KeyAverage* b) {
    return by == SortBy::name ? a->name < b->name : key(*a) > key(*b);
  });
  rows.resize(std::min(rows.size(), options.row_limit));
  return rows;
}

}  // namespace

KeyAverages Profile::key_averages(KeyAveragesOptions options) const {
  KeyAverages averages{.with_cuda = on_cuda,
                       .with_memory = with_memory,
                       .with_flops = with_flops,
                       .with_shapes = includes(options.group_by, GroupBy::shape),
                       .with_modules = includes(options.group_by, GroupBy::module),
                       .warnings = warnings};
  struct RowWords {
    Words implementations, formats;
    std::map<std::string, int64_t> kernels;  ///< their times
  };
  std::map<Key, std::size_t> known;
  std::vector<RowWords> words;
  std::vector<std::size_t> row_of(events.size());
  const std::vector<Totals> totals = totals_of(*this);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const auto [place, is_new] = known.emplace(key_of(event, options.group_by), averages.rows.size());
    row_of[i] = place->second;
    if (is_new) {
      averages.rows.push_back({.name = std::get<0>(place->first),
                               .kind = event.kind,
                               .shapes = std::get<2>(place->first),
                               .module = std::get<3>(place->first)});
      words.emplace_back();
    }
    KeyAverage& row = averages.rows[row_of[i]];
    ++row.calls;
    row.self_cpu += self_time(*this, i);
    row.self_cuda += self_device_time(*this, i);
    row.self_cpu_memory += event.self_cpu_memory;
    row.self_cuda_memory += event.self_cuda_memory;
    row.flops += event.flops;
    RowWords& of_row = words[row_of[i]];
    if (!event.implementation.empty()) of_row.implementations.insert(event.implementation);
    of_row.formats.merge(formats(event));
    for (const std::size_t activity : event.activities)
      of_row.kernels[activities[activity].name] += activities[activity].duration();

    bool inside_its_own_row = false;
    for (std::size_t around = event.parent; around != none && !inside_its_own_row;
         around = events[around].parent)
      inside_its_own_row = row_of[around] == row_of[i];
    if (inside_its_own_row) continue;
    row.cpu += event.duration();
    row.cuda += totals[i].cuda;
    row.cpu_memory += totals[i].cpu_memory;
    row.cuda_memory += totals[i].cuda_memory;
  }
  for (std::size_t i = 0; i < averages.rows.size(); ++i) {
    averages.rows[i].implementation = joined(words[i].implementations);
    averages.rows[i].format = joined(words[i].formats);
    const auto& kernels = words[i].kernels;
    const auto longest = std::ranges::max_element(kernels, {}, [](const auto& one) { return one.second; });
    if (longest != kernels.end()) averages.rows[i].kernel = longest->first;
  }
  add_row_of_strays(*this, averages);
  for (const KeyAverage& row : averages.rows) averages.cpu += row.self_cpu, averages.cuda += row.self_cuda;
  averages.hints = fusion_hints(*this);
  return averages;
}

const KeyAverage& KeyAverages::at(const std::string& name) const {
  const auto row = std::ranges::find(rows, name, &KeyAverage::name);
  check<ValueError>(row != rows.end(), "key_averages: there is no row \"{}\"", name);
  return *row;
}

std::string KeyAverages::table(TableOptions options) const {
  const std::vector<const KeyAverage*> chosen = chosen_rows(*this, options);
  const std::vector<Column> columns = columns_of(*this, options, chosen);
  std::vector<TextTable::Column> layout;
  std::vector<std::string> titles;
  for (const Column& column : columns) layout.push_back(column.layout), titles.push_back(column.title);
  TextTable lines(layout);
  for (const std::string& warning : warnings) lines.add_text("warning: " + printable(warning));
  lines.add_rule();
  lines.add(titles);
  lines.add_rule();
  for (const KeyAverage* row : chosen) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(column.cell(*row));
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
  for (const std::string& hint : hints) text += wrapped("hint: " + hint + '\n', options.width);
  return text;
}

std::ostream& operator<<(std::ostream& out, const KeyAverages& averages) { return out << averages.table(); }

}  // namespace pleat::profile
