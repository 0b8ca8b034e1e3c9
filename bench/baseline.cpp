#include <map>
#include <set>

#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"

namespace pleat::bench {
namespace {

constexpr double least_change = 0.02;

}  // namespace

Change change_of(const benchmark::Measurement& before, const benchmark::Measurement& now) {
  if (now.median() > before.median() * (1 + least_change) && now.lower_quartile() > before.upper_quartile())
    return Change::slower;
  if (before.median() > now.median() * (1 + least_change) && now.upper_quartile() < before.lower_quartile())
    return Change::faster;
  return Change::same;
}

std::string comparison(const Results& before, const Results& now, const std::string& name, bool color) {
  std::map<std::string, const Record*> known;  // those that are not met yet
  std::set<std::string> subcommands;
  for (const Record& record : now.records) subcommands.insert(record.subcommand);
  for (const Record& record : before.records)
    if (record.time && subcommands.count(record.subcommand) > 0) known[record.key()] = &record;

  TextTable table({{.left = true, .wraps = 24}, {}, {}, {}, {.left = true}}, "  ");
  table.add({"compared with " + name, "before", "now", "now/before"});
  const auto add = [&](const Record& record, const std::string& earlier, const std::string& later,
                       const std::string& ratio, const char* word, const char* mark = nullptr) {
    std::string title;
    for (const auto& [label, text] : record.labels) title += (title.empty() ? "" : "  ") + text;
    table.add({title, earlier, later, ratio, word}, color ? mark : nullptr);
  };
  std::map<Change, int> counts;
  std::vector<double> ratios;
  int fresh = 0;
  for (const Record& record : now.records) {
    if (!record.time) continue;
    const double median = record.time->median();
    const auto found = known.find(record.key());
    if (found == known.end()) {
      ++fresh;
      add(record, "-", benchmark::format_time(median), "", "new");
      continue;
    }
    const benchmark::Measurement& earlier = *found->second->time;
    const Change change = change_of(earlier, *record.time);
    ++counts[change];
    if (earlier.median() > 0) ratios.push_back(median / earlier.median());
    add(record, benchmark::format_time(earlier.median()), benchmark::format_time(median),
        earlier.median() > 0 ? fmt::format("{:.3f}", ratios.back()) : "",
        change == Change::same     ? ""
        : change == Change::faster ? "FASTER"
                                   : "SLOWER",
        change == Change::same     ? nullptr
        : change == Change::faster ? "\x1b[1;32m"
                                   : "\x1b[1;31m");
    known.erase(found);
  }
  for (const auto& [key, record] : known)
    add(*record, benchmark::format_time(record->time->median()), "-", "", "no longer there");

  std::string text =
      fmt::format("{} faster, {} slower, {} within the noise, {} new, {} no longer there",
                  counts[Change::faster], counts[Change::slower], counts[Change::same], fresh, known.size());
  if (const double middle = ratios.size() < 3 ? 1 : benchmark::quantile(ratios, 0.5);
      middle > 1.05 || middle < 1 / 1.05)
    text += fmt::format(
        "\nThe median of all ratios is {:.2f}. Where everything moves alike, the machine may "
        "have been busier in one of the runs: repeat both.",
        middle);
  if (before.machine != now.machine)
    text += fmt::format(
        "\nThe machines differ, so the ratios say little about the program:\n  before: {}\n"
        "  now:    {}",
        before.machine, now.machine);
  table.fit(static_cast<std::size_t>(page_width()));
  return table.text() + text;
}

}  // namespace pleat::bench
