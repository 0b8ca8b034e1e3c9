#include "pleat/bench/charts.h"

#include <algorithm>

#include "pleat/bench/machine.h"
#include "pleat/bench/options.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/plot/chart.h"

namespace pleat::bench {
namespace {

/// Labels, by whether they are the same in all records: only others tell series apart.
struct Labels {
  std::string common;  ///< their texts
  std::vector<std::string> differing;

  Labels(const std::vector<Record>& records, const std::vector<std::string>& labels) {
    std::vector<std::string> same;
    for (const std::string& label : labels) {
      const auto differs = [&](const Record& r) { return r.label(label) != records[0].label(label); };
      (std::any_of(records.begin(), records.end(), differs) ? differing : same).push_back(label);
    }
    if (!records.empty()) common = label_text(records[0], same);
  }
};

/// "Convolution: direct, float32".
std::string title_of(const TimeChart& chart, const std::vector<std::string>& common) {
  std::string title = chart.title;
  for (const std::string& text : common)
    if (!text.empty()) title += (title == chart.title ? ": " : ", ") + text;
  return title;
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

std::string time_bars(const TimeChart& chart, const std::vector<Record>& records) {
  const benchmark::TimeUnit unit = unit_of(records, chart.title);
  const Labels groups(records, chart.groups), series(records, chart.series);
  plot::BarChart bars{.title = title_of(chart, {groups.common, series.common}),
                      .subtitle = subtitle(records) + "; whiskers: quartiles",
                      .axis = fmt::format("time [{}]", unit.name)};
  for (const Record& record : records) {
    plot::Bar bar{.note = record.failure};
    if (record.time)
      bar = {record.time->median / unit.seconds, record.time->lower_quartile / unit.seconds,
             record.time->upper_quartile / unit.seconds};
    bars.add(label_text(record, groups.differing.empty() ? chart.groups : groups.differing),
             label_text(record, series.differing), bar);
  }
  return plot::to_svg(bars);
}

std::string time_lines(const TimeChart& chart, const std::vector<Record>& records) {
  const benchmark::TimeUnit unit = unit_of(records, chart.title);
  const Labels series(records, chart.series);
  plot::LineChart lines{.title = title_of(chart, {series.common}),
                        .subtitle = subtitle(records),
                        .x_axis = chart.x_axis,
                        .y_axis = fmt::format("time [{}]", unit.name),
                        .log_x = true,
                        .log_y = true};
  for (const Record& record : records)
    if (const auto x = record.value(chart.x_value); record.time && x)
      lines.add(label_text(record, series.differing), {*x, record.time->median / unit.seconds});
  return plot::to_svg(lines);
}

std::string roofline(const std::string& title, const std::string& note, const std::vector<Record>& records,
                     const std::string& series, const Ceilings& ceilings) {
  plot::Roofline chart{.title = title, .subtitle = subtitle(records) + "; " + note};
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
  return plot::to_svg(chart);
}

}  // namespace pleat::bench
