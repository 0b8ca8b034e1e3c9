#include "pleat/bench/record.h"

#include <algorithm>
#include <cmath>

namespace pleat::bench {
namespace {

template <class List>
auto find(List& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
}

template <class List, class Value>
void set(List& list, const std::string& name, Value value) {
  if (const auto found = find(list, name); found != list.end())
    found->second = std::move(value);
  else
    list.emplace_back(name, std::move(value));
}

const std::string& text_of(const Record::Texts& list, const std::string& name) {
  static const std::string none;
  const auto found = find(list, name);
  return found == list.end() ? none : found->second;
}

}  // namespace

Time::Time(const benchmark::Measurement& m)
    : median(m.median()),
      lower_quartile(m.lower_quartile()),
      upper_quartile(m.upper_quartile()),
      mean(m.mean()),
      wall_median(m.wall_median()),
      first_call(m.first_call),
      tuning(m.tuning),
      blocks(static_cast<int64_t>(m.times.size())),
      runs(m.runs()),
      threads(m.threads),
      cold_cache(m.cold_cache) {}

const std::string& Record::label(const std::string& name) const { return text_of(labels, name); }
const std::string& Record::detail(const std::string& name) const { return text_of(details, name); }

std::optional<double> Record::value(const std::string& name) const {
  const auto found = find(values, name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

void Record::set_label(const std::string& name, std::string text) { set(labels, name, std::move(text)); }
void Record::set_detail(const std::string& name, std::string text) { set(details, name, std::move(text)); }
void Record::set_value(const std::string& name, double number) {
  if (std::isfinite(number)) set(values, name, number);
}

std::string Record::key() const {
  Texts sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  std::string text = subcommand;
  for (const auto& [name, value] : sorted)
    if (!value.empty()) text += " | " + name + ' ' + value;
  return text;
}

}  // namespace pleat::bench
