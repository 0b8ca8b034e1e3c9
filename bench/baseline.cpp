#include "pleat/bench/baseline.h"

#include <map>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"
#include "pleat/core/base/text_table.h"

namespace pleat::bench {
namespace {

constexpr double least_change = 0.02;

struct Words {
  const char *text, *color, *counted;
};
/// By Change.
constexpr Words words[] = {{"", nullptr, "within the noise"},
                           {"FASTER", "\x1b[1;32m", "faster"},
                           {"SLOWER", "\x1b[1;31m", "slower"},
                           {"new", nullptr, "new"},
                           {"no longer there", nullptr, "no longer there"}};

}  // namespace

Change compare(const Time& before, const Time& now) {
  if (now.median > before.median * (1 + least_change) && now.lower_quartile > before.upper_quartile)
    return Change::slower;
  if (before.median > now.median * (1 + least_change) && now.upper_quartile < before.lower_quartile)
    return Change::faster;
  return Change::same;
}

std::vector<ComparedRecord> compare(const std::vector<Record>& before, const std::vector<Record>& now) {
  std::map<std::string, const Record*> known;
  for (const Record& record : before)
    if (record.time) known[record.key()] = &record;
  std::vector<ComparedRecord> all;
  std::set<std::string> subcommands, met;
  for (const Record& record : now) {
    subcommands.insert(record.subcommand);
    if (!record.time) continue;
    met.insert(record.key());
    const auto found = known.find(record.key());
    const Record* earlier = found != known.end() ? found->second : nullptr;
    all.push_back({earlier ? compare(*earlier->time, *record.time) : Change::fresh, earlier, &record});
  }
  for (const Record& record : before)
    if (record.time && subcommands.count(record.subcommand) > 0 && met.count(record.key()) == 0)
      all.push_back({Change::gone, &record, nullptr});
  return all;
}

std::string comparison(const Results& before, const Results& now, const std::string& name, bool color) {
  TextTable table({{.left = true, .wraps = 24}, {}, {}, {}, {.left = true}}, "  ");
  table.add({"compared with " + name, "before", "now", "now/before"});
  std::map<Change, int> counts;
  std::vector<double> ratios;
  for (const ComparedRecord& one : compare(before.records, now.records)) {
    ++counts[one.change];
    const Words& change = words[static_cast<std::size_t>(one.change)];
    std::vector<std::string> cells{"", "-", "-", ""};
    for (const auto& [label, text] : (one.now != nullptr ? one.now : one.before)->labels)
      cells[0] += (cells[0].empty() ? "" : "  ") + text;
    if (one.before != nullptr) cells[1] = benchmark::format_time(one.before->time->median);
    if (one.now != nullptr) cells[2] = benchmark::format_time(one.now->time->median);
    if (one.before != nullptr && one.now != nullptr && one.before->time->median > 0) {
      ratios.push_back(one.now->time->median / one.before->time->median);
      cells[3] = fmt::format("{:.3f}", ratios.back());
    }
    cells.emplace_back(change.text);
    table.add(cells, color ? change.color : nullptr);
  }
  std::string text;
  for (const Change change : {Change::faster, Change::slower, Change::same, Change::fresh, Change::gone})
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[change],
                        words[static_cast<std::size_t>(change)].counted);
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
