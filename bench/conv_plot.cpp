#include "pleat/bench/conv_plot.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/plot/plot.h"
#include "pleat/bench/usage_error.h"
#include "pleat/core/format.h"
#include "pleat/profile/measurement.h"

namespace pleat::bench {
namespace {

template <class T>
std::size_t place_of(std::vector<T>& list, const T& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

int64_t batch_of(const Record& record) { return parse_conv_shape(record.label("problem")).batch; }

std::string without_batch(const Record& record) {
  ops::ConvProblem problem = parse_conv_shape(record.label("problem"));
  problem.batch = 1;
  return problem.describe().substr(3);  // "n1 "
}

/// What all records have in common, for the line below the title.
std::string subtitle(const Record& record) {
  std::string text = record.label("dtype");
  for (const char* label : {"precision", "format", "cache", "device"})
    if (!record.label(label).empty()) text += ", " + record.label(label);
  return text + (record.time.has_value() ? fmt::format(", {} threads", record.time->threads) : "");
}

std::string batch_plot(const std::vector<Record>& records) {
  plot::LineChart chart{.title = "Convolution: time against batch size",
                        .subtitle = fmt::format("{}; {}", without_batch(records[0]), subtitle(records[0])),
                        .x_axis = "batch size",
                        .y_axis = "time [ms]"};
  std::vector<std::string> names;
  for (const Record& record : records) {
    const std::size_t place = place_of(names, record.label("pass") + ", " + record.label("implementation"));
    if (place == chart.series.size()) chart.series.push_back({names.back(), {}});
    chart.series[place].points.push_back({static_cast<double>(batch_of(record)), 1e3 * record.time->median});
  }
  return plot::svg(chart);
}

std::string bars_plot(const std::vector<Record>& records) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Record& record : records) smallest = std::min(smallest, record.time->median);
  const benchmark::TimeUnit unit = benchmark::time_unit(smallest);
  plot::BarChart chart{.title = "Convolution: time of each implementation",
                       .subtitle = subtitle(records[0]) + "; bars are medians, whiskers quartiles",
                       .axis = fmt::format("time [{}]", unit.name)};
  std::vector<std::string> names;
  for (const Record& record : records) {
    const std::size_t group = place_of(chart.groups, record.label("problem") + ", " + record.label("pass"));
    const std::size_t place = place_of(names, record.label("implementation"));
    if (place == chart.series.size()) chart.series.push_back({names.back(), {}});
    std::vector<plot::Bar>& bars = chart.series[place].bars;
    if (bars.size() <= group) bars.resize(group + 1, {.note = "-"});
    bars[group] = {.value = record.time->median / unit.seconds,
                   .low = record.time->lower_quartile / unit.seconds,
                   .high = record.time->upper_quartile / unit.seconds};
  }
  return plot::svg(chart);
}

}  // namespace

std::string time_plot(const std::vector<Record>& all) {
  std::vector<Record> records;
  std::copy_if(all.begin(), all.end(), std::back_inserter(records),
               [](const Record& record) { return record.time.has_value(); });
  check<UsageError>(!records.empty(), "conv: --plot: nothing could be measured, so there is nothing to draw");
  std::set<std::string> problems;
  std::set<int64_t> batches;
  for (const Record& record : records) {
    problems.insert(without_batch(record));
    batches.insert(batch_of(record));
  }
  return problems.size() == 1 && batches.size() > 2 ? batch_plot(records) : bars_plot(records);
}

std::string roofline_plot(const std::vector<Record>& records, const Ceilings& ceilings) {
  plot::Roofline chart{
      .title = "Convolution under the machine's ceilings",
      .subtitle = "operations without those on padding; bytes of input, weight and output once each"};
  for (const Ceiling& peak : ceilings.peaks) chart.peaks.push_back({peak.name, peak.value});
  for (const Ceiling& bandwidth : ceilings.bandwidths)
    chart.bandwidths.push_back({bandwidth.name, bandwidth.value});
  for (const Record& record : records) {
    if (!record.time.has_value()) continue;
    chart.points.push_back(
        {.name = record.label("name").empty() ? record.label("problem") : record.label("name"),
         .series = record.label("implementation"),
         .intensity = record.value("flops_valid").value_or(0) / record.value("bytes").value_or(1),
         .gflops = record.value("gflops_valid").value_or(0)});
  }
  check<UsageError>(!chart.points.empty(),
                    "conv: --roofline: nothing could be measured, so there is nothing to draw");
  return plot::svg(chart);
}

std::string ceilings_text(const Ceilings& ceilings) {
  std::string text = "measured ceilings: ";
  const auto add = [&](const std::vector<Ceiling>& list, const char* unit) {
    for (const Ceiling& one : list)
      text += fmt::format("{}{} {} {}", text.back() == ' ' ? "" : ", ", one.name,
                          benchmark::format_significant(one.value, 3), unit);
  };
  add(ceilings.peaks, "GFLOP/s");
  add(ceilings.bandwidths, "GB/s");
  return text;
}

}  // namespace pleat::bench
