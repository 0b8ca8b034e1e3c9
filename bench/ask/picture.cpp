#include "pleat/bench/ask/picture.h"

#include <algorithm>

namespace pleat::bench::ask {
namespace {

constexpr double milliseconds = 1e3;

template <class Series>
Series& series_of(std::vector<Series>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Series& one) { return one.name == name; });
  if (found != all.end()) return *found;
  all.push_back({});
  all.back().name = name;
  return all.back();
}

}  // namespace

void add_bar(plot::BarChart& chart, const std::string& group, const std::string& series, const Time& time) {
  auto place = std::find(chart.groups.begin(), chart.groups.end(), group);
  if (place == chart.groups.end()) place = chart.groups.insert(place, group);
  const auto index = static_cast<std::size_t>(place - chart.groups.begin());
  std::vector<plot::Bar>& bars = series_of(chart.series, series).bars;
  if (bars.size() <= index) bars.resize(index + 1);
  bars[index] = {.value = milliseconds * time.median,
                 .low = milliseconds * time.lower_quartile,
                 .high = milliseconds * time.upper_quartile};
}

void add_point(plot::LineChart& chart, const std::string& series, double x, const Time& time) {
  series_of(chart.series, series).points.push_back({x, milliseconds * time.median});
}

}  // namespace pleat::bench::ask
