#include "pleat/bench/pictures.h"

#include <algorithm>

#include "pleat/bench/ceilings.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/plot/plot.h"
#include "pleat/bench/usage_error.h"
#include "pleat/core/base/format.h"
#include "pleat/profile/measurement.h"

namespace pleat::bench {
namespace {

/// The labels' texts, those that are there.
std::string joined(const Record& record, const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels)
    if (const std::string& part = record.label(label); !part.empty())
      text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// Labels that are not the same in all records: only those tell series apart.
std::vector<std::string> telling(const std::vector<Record>& records, const std::vector<std::string>& labels) {
  std::vector<std::string> result;
  for (const std::string& label : labels)
    for (const Record& record : records)
      if (record.label(label) != records.front().label(label)) {
        result.push_back(label);
        break;
      }
  return result;
}

/// The place of a text in a list; added when it is new.
std::size_t place(std::vector<std::string>& list, const std::string& text) {
  const auto found = std::find(list.begin(), list.end(), text);
  const auto index = static_cast<std::size_t>(found - list.begin());
  if (found == list.end()) list.push_back(text);
  return index;
}

Device device_of(const std::vector<Record>& records) {
  for (const Record& record : records)
    if (const std::string& name = record.label("device"); !name.empty()) return name;
  return {};
}

std::string subtitle(const std::vector<Record>& records) {
  int threads = 0;
  for (const Record& record : records)
    if (record.time) threads = record.time->threads;
  return describe_machine(device_of(records), threads);
}

/// The unit for times of which this is the longest.
benchmark::TimeUnit unit_of(const std::vector<Record>& records, const std::string& title) {
  double longest = 0;
  for (const Record& record : records)
    if (record.time) longest = std::max(longest, record.time->median);
  check<UsageError>(longest > 0, "{}: nothing was timed, so there is nothing to draw", title);
  return benchmark::time_unit(longest);
}

}  // namespace

std::string with_common_labels(const std::string& title, const std::vector<Record>& records,
                               const std::vector<std::string>& labels) {
  if (records.empty()) return title;
  std::vector<std::string> common = labels;
  for (const std::string& differs : telling(records, labels)) std::erase(common, differs);
  const std::string text = joined(records.front(), common);
  return text.empty() ? title : title + ": " + text;
}

std::string time_bars(const std::string& title, const std::vector<Record>& records,
                      const std::vector<std::string>& series, const std::vector<std::string>& also_by) {
  const benchmark::TimeUnit unit = unit_of(records, title);
  std::vector<std::string> groups{"problem"};
  for (const std::string& label : telling(records, also_by)) groups.push_back(label);
  const std::vector<std::string> kinds = telling(records, series);
  plot::BarChart chart{.title = title,
                       .subtitle = subtitle(records) + "; whiskers: quartiles",
                       .axis = fmt::format("time [{}]", unit.name)};
  std::vector<std::string> names;
  for (const Record& record : records) {
    const std::size_t group = place(chart.groups, joined(record, groups));
    const std::size_t kind = place(names, joined(record, kinds));
    if (kind == chart.series.size()) chart.series.push_back({.name = names[kind]});
    auto& bars = chart.series[kind].bars;
    bars.resize(std::max(bars.size(), group + 1));
    if (record.time)
      bars[group] = {.value = record.time->median / unit.seconds,
                     .low = record.time->lower_quartile / unit.seconds,
                     .high = record.time->upper_quartile / unit.seconds};
    else
      bars[group].note = record.failure;
  }
  return plot::svg(chart);
}

std::string roofline(const std::string& title, const std::vector<Record>& records,
                     const std::string& series) {
  plot::Roofline chart{.title = title, .subtitle = subtitle(records) + "; measured ceilings"};
  const Ceilings& best = ceilings(device_of(records));
  for (const Ceiling& peak : best.peaks) chart.peaks.push_back({peak.name, peak.value});
  for (const Ceiling& bandwidth : best.bandwidths)
    chart.bandwidths.push_back({bandwidth.name, bandwidth.value});
  for (const Record& record : records)
    if (const auto gflops = record.value("gflops"), intensity = record.value("intensity");
        gflops && intensity)
      chart.points.push_back({record.label("problem"), record.label(series), *intensity, *gflops});
  check<UsageError>(!chart.points.empty(), "{}: nothing was timed, so there is nothing to draw", title);
  return plot::svg(chart);
}

std::string time_lines(const LinesOptions& options, const std::vector<Record>& records) {
  const benchmark::TimeUnit unit = unit_of(records, options.title);
  const std::vector<std::string> kinds = telling(records, options.series);
  plot::LineChart chart{.title = options.title,
                        .subtitle = subtitle(records),
                        .x_axis = options.x_axis,
                        .y_axis = fmt::format("time [{}]", unit.name)};
  std::vector<std::string> names;
  for (const Record& record : records) {
    const auto x = record.value(options.x_value);
    if (!record.time || !x) continue;
    const std::size_t kind = place(names, joined(record, kinds));
    if (kind == chart.series.size()) chart.series.push_back({.name = names[kind]});
    chart.series[kind].points.push_back({*x, record.time->median / unit.seconds});
  }
  return plot::svg(chart);
}

}  // namespace pleat::bench
