#include "pleat/bench/baseline.h"

#include <map>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"

namespace pleat::bench {
namespace {

constexpr double least_change = 0.02;

struct Words {
  const char* text;
  const char* color = nullptr;
};
/// By Change.
constexpr Words words[] = {
    {""}, {"FASTER", "\x1b[1;32m"}, {"SLOWER", "\x1b[1;31m"}, {"new"}, {"no longer there"}};

std::string time_text(const Record* record) {
  return record == nullptr ? "-" : benchmark::format_time(record->time->median);
}

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
    if (record.time.has_value()) known[record.key()] = &record;
  std::vector<ComparedRecord> all;
  std::set<std::string> subcommands, met;
  for (const Record& record : now) {
    subcommands.insert(record.subcommand);
    if (!record.time.has_value()) continue;
    met.insert(record.key());
    const auto found = known.find(record.key());
    if (found == known.end()) {
      all.push_back({Change::fresh, nullptr, &record});
      continue;
    }
    const Time& earlier = *found->second->time;
    all.push_back({compare(earlier, *record.time), found->second, &record,
                   earlier.median > 0 ? record.time->median / earlier.median : 1});
  }
  for (const Record& record : before)
    if (record.time.has_value() && subcommands.count(record.subcommand) > 0 && met.count(record.key()) == 0)
      all.push_back({Change::gone, &record, nullptr});
  return all;
}

std::string comparison(const Results& before, const Results& now, const std::string& name, bool color) {
  TextTable table({{.left = true}, {}, {}, {}, {.left = true}}, "  ");
  table.add({"compared with " + name, "before", "now", "now/before"});
  std::map<Change, int> counts;
  std::vector<double> ratios;
  for (const ComparedRecord& one : compare(before.records, now.records)) {
    ++counts[one.change];
    std::string ratio, labels;
    if (one.before != nullptr && one.now != nullptr) {
      ratios.push_back(one.ratio);
      ratio = fmt::format("{:.3f}", one.ratio);
    }
    for (const auto& [label, text] : (one.now != nullptr ? one.now : one.before)->labels)
      labels += (labels.empty() ? "" : "  ") + text;
    const Words& change = words[static_cast<std::size_t>(one.change)];
    table.add({labels, time_text(one.before), time_text(one.now), ratio, change.text},
              color ? change.color : nullptr);
  }
  std::string text =
      table.text() + fmt::format("{} faster, {} slower, {} within the noise, {} new, {} no longer there",
                                 counts[Change::faster], counts[Change::slower], counts[Change::same],
                                 counts[Change::fresh], counts[Change::gone]);
  if (const double middle = ratios.size() < 3 ? 1 : benchmark::quantile(ratios, 0.5);
      middle > 1.05 || middle < 1 / 1.05)
    text += fmt::format(
        "\nThe median of all ratios is {:.2f}. Where everything moves alike, the machine may have been "
        "busier "
        "in one of the runs: repeat both.",
        middle);
  if (before.machine != now.machine)
    text += fmt::format(
        "\nThe machines differ, so the ratios say little about the program:\n  before: {}\n  now:    {}",
        before.machine, now.machine);
  return text;
}

}  // namespace pleat::bench
