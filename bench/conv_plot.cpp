#include "pleat/bench/conv_plot.h"

#include <set>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/plot/plot.h"
#include "pleat/bench/usage_error.h"
#include "pleat/core/base/format.h"

namespace pleat::bench {
namespace {

/// What tells lines and bars of one problem and pass apart, or is said once above all of them.
const std::vector<std::string> kinds = {"implementation", "dtype", "precision", "format",
                                        "bias",           "tuned", "cache"};

std::string without_batch(ops::ConvProblem problem) {
  problem.batch = 1;
  return problem.describe().substr(3);  // "n1 "
}

}  // namespace

std::string time_plot(const std::vector<Record>& records) {
  std::set<std::string> problems;
  std::set<int64_t> batches;
  std::vector<Record> by_batch = records;
  for (Record& record : by_batch) {
    const ops::ConvProblem problem = parse_conv_shape(record.label("problem"));
    problems.insert(without_batch(problem));
    batches.insert(problem.batch);
    record.set_value("batch", static_cast<double>(problem.batch));
  }
  if (problems.size() > 1 || batches.size() < 3)
    return time_bars(with_common_labels("Convolution", records, kinds), records, kinds, {"pass"});
  std::vector<std::string> series{"pass"};
  series.insert(series.end(), kinds.begin(), kinds.end());
  return time_lines({.title = with_common_labels("Convolution " + *problems.begin(), records, series),
                     .x_value = "batch",
                     .x_axis = "batch size",
                     .series = series},
                    by_batch);
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

}  // namespace pleat::bench
