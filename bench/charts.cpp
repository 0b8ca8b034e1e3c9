#include "pleat/bench/charts.h"

#include <algorithm>

#include "pleat/bench/machine.h"
#include "pleat/bench/options.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/roofline.h"

namespace pleat::bench {
namespace {

/// Of these labels those that are not the same in all records: only they tell series apart.
std::vector<std::string> differing(const std::vector<Record>& records,
                                   const std::vector<std::string>& labels) {
  std::vector<std::string> result;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(result), [&](const std::string& label) {
    return std::any_of(records.begin(), records.end(), [&](const Record& record) {
      return record.label(label) != records.front().label(label);
    });
  });
  return result;
}

std::string subtitle(const std::vector<Record>& records) {
  int threads = 0;
  Device device;
  for (const Record& record : records) {
    if (record.time) threads = record.time->threads;
    if (!record.label("device").empty()) device = record.label("device");
  }
  return describe_machine(device, threads);
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
  for (const std::string& label : differing(records, labels)) std::erase(common, label);
  const std::string text = label_text(records.front(), common);
  return text.empty() ? title : title + ": " + text;
}

chart::Bar bar(const Time& time, double unit) {
  return {.value = time.median / unit, .low = time.lower_quartile / unit, .high = time.upper_quartile / unit};
}

std::string time_bars(const std::string& title, const std::vector<Record>& records,
                      const std::vector<std::string>& series, const std::vector<std::string>& also_by) {
  const benchmark::TimeUnit unit = unit_of(records, title);
  std::vector<std::string> groups = differing(records, also_by);
  groups.insert(groups.begin(), "problem");
  const std::vector<std::string> kinds = differing(records, series);
  chart::BarChart chart{.title = title,
                        .subtitle = subtitle(records) + "; whiskers: quartiles",
                        .axis = fmt::format("time [{}]", unit.name)};
  for (const Record& record : records)
    chart.add(label_text(record, groups), label_text(record, kinds),
              record.time ? bar(*record.time, unit.seconds) : chart::Bar{.note = record.failure});
  return chart::svg(chart);
}

std::string time_lines(const LinesOptions& options, const std::vector<Record>& records) {
  const benchmark::TimeUnit unit = unit_of(records, options.title);
  const std::vector<std::string> kinds = differing(records, options.series);
  chart::LineChart chart{.title = options.title,
                         .subtitle = subtitle(records),
                         .x_axis = options.x_axis,
                         .y_axis = fmt::format("time [{}]", unit.name),
                         .log_x = true,
                         .log_y = true};
  for (const Record& record : records)
    if (const auto x = record.value(options.x_value); record.time && x)
      chart.add(label_text(record, kinds), {*x, record.time->median / unit.seconds});
  return chart::svg(chart);
}

std::string roofline(const std::string& title, const std::string& note, const std::vector<Record>& records,
                     const std::string& series, const Ceilings& ceilings) {
  chart::Roofline chart{.title = title, .subtitle = subtitle(records) + "; " + note};
  for (const Ceiling& peak : ceilings.peaks) chart.peaks.push_back({peak.name, peak.value});
  for (const Ceiling& bandwidth : ceilings.bandwidths)
    chart.bandwidths.push_back({bandwidth.name, bandwidth.value});
  for (const Record& record : records) {
    const auto bytes = record.value("bytes"), all = record.value("flops");
    if (!record.time || !bytes || !all) continue;
    const double flops = record.value("flops_valid").value_or(*all);
    const std::string& name = record.label("name");
    chart.points.push_back({name.empty() ? record.label("problem") : name, record.label(series),
                            flops / *bytes, 1e-9 * flops / record.time->median});
  }
  check<UsageError>(!chart.points.empty(), "{}: nothing was timed, so there is nothing to draw", title);
  return chart::svg(chart);
}

}  // namespace pleat::bench
