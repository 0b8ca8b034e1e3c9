#include "pleat/profile/key_averages.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/profile/profile.h"

namespace pleat::profile {
namespace {

std::string shapes_text(const Event& event) {
  std::string text;
  for (const TensorInfo& input : event.inputs) {
    if (!text.empty()) text += ' ';
    text += input.defined ? to_string(input.shape) : "-";
  }
  return text;
}

/// Formats of inputs with 3 to 5 dimensions; other tensors have none.
std::vector<std::string> formats(const Event& event) {
  std::vector<std::string> all;
  for (const TensorInfo& input : event.inputs) {
    if (!input.defined || input.shape.size() < 3 || input.shape.size() > 5) continue;
    std::string format = name(input.format);
    if (std::find(all.begin(), all.end(), format) == all.end()) all.push_back(std::move(format));
  }
  return all;
}

std::string joined(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Adds a word to a list unless it is there.
void add_word(std::vector<std::string>& words, const std::string& word) {
  if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
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
};

/// Children come after their parents, so one pass from the end is enough.
std::vector<Totals> totals_of(const Profile& profile) {
  std::vector<Totals> totals(profile.events.size());
  for (std::size_t i = profile.events.size(); i-- > 0;) {
    const Event& event = profile.events[i];
    Totals& own = totals[i];
    own.cuda += self_device_time(profile, i);
    own.cpu_memory += event.self_cpu_memory;
    own.cuda_memory += event.self_cuda_memory;
    if (event.parent == none) continue;
    Totals& parent = totals[event.parent];
    parent.cuda += own.cuda;
    parent.cpu_memory += own.cpu_memory;
    parent.cuda_memory += own.cuda_memory;
  }
  return totals;
}

/// A row for GPU activities outside of any range.
void add_row_of_strays(const Profile& profile, KeyAverages& averages) {
  KeyAverage row{.name = "(outside of any range)", .kind = RangeKind::user};
  for (const DeviceActivity& activity : profile.activities) {
    if (activity.event != none) continue;
    ++row.calls;
    row.self_cuda += activity.duration();
  }
  if (row.calls == 0) return;
  row.cuda = row.self_cuda;
  averages.rows.push_back(std::move(row));
}

}  // namespace

KeyAverages Profile::key_averages(KeyAveragesOptions options) const {
  KeyAverages averages;
  averages.with_cuda = on_cuda;
  averages.with_memory = with_memory;
  averages.with_flops = with_flops;
  averages.with_shapes = includes(options.group_by, GroupBy::shape);
  averages.with_modules = includes(options.group_by, GroupBy::module);
  averages.warnings = warnings;

  struct Words {
    std::vector<std::string> implementations, formats;
    std::map<std::string, int64_t> kernels;  ///< their times
  };
  std::map<Key, std::size_t> known;
  std::vector<Words> words;
  std::vector<std::size_t> row_of(events.size());
  const std::vector<Totals> totals = totals_of(*this);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const auto [place, fresh] = known.emplace(key_of(event, options.group_by), averages.rows.size());
    row_of[i] = place->second;
    if (fresh) {
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
    Words& of_row = words[row_of[i]];
    add_word(of_row.implementations, event.implementation);
    for (const std::string& format : formats(event)) add_word(of_row.formats, format);
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
    averages.rows[i].implementation = joined(std::move(words[i].implementations));
    averages.rows[i].format = joined(std::move(words[i].formats));
    const auto& kernels = words[i].kernels;
    const auto longest = std::max_element(kernels.begin(), kernels.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest != kernels.end()) averages.rows[i].kernel = longest->first;
  }
  add_row_of_strays(*this, averages);
  for (const KeyAverage& row : averages.rows) {
    averages.cpu += row.self_cpu;
    averages.cuda += row.self_cuda;
  }
  return averages;
}

const KeyAverage& KeyAverages::at(const std::string& name) const {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const KeyAverage& r) { return r.name == name; });
  check<ValueError>(row != rows.end(), "key_averages: there is no row \"{}\"", name);
  return *row;
}

}  // namespace pleat::profile
