#include "pleat/bench/baseline.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "pleat/bench/table.h"
#include "pleat/profile/measurement.h"

namespace pleat::bench {
namespace {

constexpr double least_change = 0.02;

std::string text_of(Move move) {
  switch (move) {
    case Move::same:
      return "";
    case Move::faster:
      return "FASTER";
    case Move::slower:
      return "SLOWER";
    case Move::fresh:
      return "new";
    case Move::gone:
      break;
  }
  return "no longer there";
}

std::string time_text(const Record* record) {
  if (record == nullptr || !record->time.has_value()) return "-";
  return benchmark::format_time(record->time->median);
}

std::string label_text(const Record& record) {
  std::string text;
  for (const auto& [name, value] : record.labels) text += (text.empty() ? "" : "  ") + value;
  return text;
}

const char* color_of(Move move) {
  if (move == Move::faster) return "\x1b[1;32m";
  if (move == Move::slower) return "\x1b[1;31m";
  return nullptr;
}

}  // namespace

Move compare(const Time& before, const Time& now) {
  if (now.median > before.median * (1 + least_change) && now.lower_quartile > before.upper_quartile)
    return Move::slower;
  if (before.median > now.median * (1 + least_change) && now.upper_quartile < before.lower_quartile)
    return Move::faster;
  return Move::same;
}

std::vector<Change> changes(const std::vector<Record>& before, const std::vector<Record>& now) {
  std::map<std::string, const Record*> known;
  for (const Record& record : before)
    if (record.time.has_value()) known[record.key()] = &record;
  std::vector<Change> all;
  std::set<std::string> subcommands;
  std::set<std::string> met;
  for (const Record& record : now) {
    subcommands.insert(record.subcommand);
    const auto found = known.find(record.key());
    const Record* earlier = found == known.end() ? nullptr : found->second;
    if (!record.time.has_value()) continue;
    met.insert(record.key());
    if (earlier == nullptr)
      all.push_back({Move::fresh, nullptr, &record});
    else
      all.push_back({compare(*earlier->time, *record.time), earlier, &record,
                     earlier->time->median > 0 ? record.time->median / earlier->time->median : 1});
  }
  for (const Record& record : before)
    if (record.time.has_value() && subcommands.count(record.subcommand) > 0 && met.count(record.key()) == 0)
      all.push_back({Move::gone, &record, nullptr});
  return all;
}

std::string comparison(const Results& before, const Results& now, const std::string& name, bool color) {
  const std::vector<Change> all = changes(before.records, now.records);
  std::vector<std::vector<std::string>> lines{{"compared with " + name, "before", "now", "now/before", ""}};
  std::map<Move, int> counts;
  for (const Change& change : all) {
    ++counts[change.move];
    const bool both = change.before != nullptr && change.now != nullptr;
    lines.push_back({label_text(change.now != nullptr ? *change.now : *change.before),
                     time_text(change.before), time_text(change.now),
                     both ? fmt::format("{:.3f}", change.ratio) : "", text_of(change.move)});
  }
  const std::string body = aligned(lines, {true, false, false, false, true});
  std::string text;
  std::size_t begin = 0;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const std::size_t end = body.find('\n', begin);
    const std::string line = body.substr(begin, end - begin);
    begin = end + 1;
    const char* paint = color && l > 0 ? color_of(all[l - 1].move) : nullptr;
    text += (paint != nullptr ? paint + line + "\x1b[0m" : line) + '\n';
  }
  text += fmt::format("{} faster, {} slower, {} within the noise, {} new, {} no longer there",
                      counts[Move::faster], counts[Move::slower], counts[Move::same], counts[Move::fresh],
                      counts[Move::gone]);
  std::vector<double> ratios;
  for (const Change& change : all)
    if (change.before != nullptr && change.now != nullptr) ratios.push_back(change.ratio);
  if (const double middle = ratios.size() < 3 ? 1 : benchmark::quantile(ratios, 0.5);
      middle > 1.05 || middle < 1 / 1.05)
    text += fmt::format(
        "\nThe median of all ratios is {:.2f}. Where everything moves alike, the machine may have been "
        "busier in one "
        "of the runs: repeat both.",
        middle);
  if (before.machine != now.machine)
    text += fmt::format(
        "\nThe machines differ, so the ratios say little about the program:\n  before: {}\n  now:    {}",
        before.machine, now.machine);
  return text;
}

}  // namespace pleat::bench
