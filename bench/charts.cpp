#include <algorithm>

#include "pleat/bench/machine.h"
#include "pleat/bench/options.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/plot/chart.h"

namespace pleat::bench {

std::string time_bars(const std::vector<Record>& records) {
  double longest = 0;
  int threads = 0;
  for (const Record& record : records)
    if (record.time) longest = std::max(longest, record.time->median()), threads = record.time->threads;
  check<UsageError>(longest > 0, "--plot: nothing was timed, so there is nothing to draw");
  const benchmark::TimeUnit unit = benchmark::time_unit(longest);
  const std::string device = records[0].label("device");
  plot::BarChart bars{.title = records[0].subcommand,
                      .subtitle = describe_machine(device, threads) + "; whiskers: quartiles",
                      .axis = fmt::format("time [{}]", unit.name)};
  std::vector<std::string> differing;  // labels that tell the bars of a group apart
  for (const auto& [label, text] : records[0].labels) {
    const auto differs = [&label = label, &text = text](const Record& r) { return r.label(label) != text; };
    if (std::any_of(records.begin(), records.end(), differs))
      differing.push_back(label);
    else
      bars.title += (bars.title == records[0].subcommand ? ": " : ", ") + text;
  }
  for (const Record& record : records) {
    if (record.labels.size() < 2 || (!record.time && record.failure.empty())) continue;  // a conclusion
    plot::Bar bar{.note = record.failure};
    if (record.time)
      bar = {record.time->median() / unit.seconds, record.time->lower_quartile() / unit.seconds,
             record.time->upper_quartile() / unit.seconds};
    std::string name;
    for (const std::string& label : differing)
      if (label != "problem") name += (name.empty() ? "" : ", ") + record.label(label);
    bars.add(record.label("problem"), name, bar);
  }
  return plot::to_svg(bars);
}

}  // namespace pleat::bench
