#include <algorithm>
#include <cmath>
#include <set>

#include "pleat/bench/plot/frame.h"

namespace pleat::bench::plot {
namespace {

constexpr double page_width = 820, plot_height = 360, margin = 16;
constexpr std::size_t most_own_ticks = 16;  ///< so many values of x get ticks of their own

bool shows(double value, bool log) { return std::isfinite(value) && (!log || value > 0); }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
  bool empty() const { return low > high; }
};

Scale scale_of(const Range& range, bool log) {
  if (log) return Scale::logarithmic(range.low, range.high);
  // Times and rates are read against nothing at all, unless they never come near it.
  return Scale::linear(range.low >= 0 && range.low < 0.7 * range.high ? 0 : range.low, range.high);
}

}  // namespace

std::string svg(const LineChart& chart) {
  Range x_range, y_range;
  std::set<double> xs;
  std::vector<std::string> names;
  std::vector<std::vector<Point>> lines;
  for (const LineSeries& series : chart.series) {
    names.push_back(series.name);
    std::vector<Point>& line = lines.emplace_back();
    for (const Point& point : series.points) {
      if (!shows(point.x, chart.log_x) || !shows(point.y, chart.log_y)) continue;
      line.push_back(point);
      x_range.add(point.x), y_range.add(point.y);
      xs.insert(point.x);
    }
    std::stable_sort(line.begin(), line.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  }

  Svg out;
  double top = out.heading(chart.title, chart.subtitle, page_width);
  top = out.legend(names, margin, top, page_width - margin, true);
  if (x_range.empty()) {
    out.text(margin, top + 24, "nothing was measured", {.style = "quiet"});
    return out.document(page_width, top + 44, chart.title);
  }
  Scale x = scale_of(x_range, chart.log_x);
  if (x_range.low < x_range.high) x.crop(x_range.low, x_range.high);
  Scale y = scale_of(y_range, chart.log_y);
  const Frame frame = make_frame(x, y, page_width, top + 10, plot_height);
  const std::vector<double> own(xs.begin(), xs.end());
  const bool own_ticks = own.size() > 1 && own.size() <= most_own_ticks;
  const double end = draw_axes(out, frame, x, own_ticks ? own : x.ticks(), y, chart.x_axis, chart.y_axis);
  for (std::size_t s = 0; s < lines.size(); ++s) {
    std::vector<Point> pixels;
    for (const Point& point : lines[s]) pixels.push_back({x(point.x), y(point.y)});
    out.polyline(pixels, s);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      out.marker(pixels[i].x, pixels[i].y, s,
                 names[s] + ": " + number_text(lines[s][i].y) + " at " + number_text(lines[s][i].x));
  }
  return out.document(page_width, end, chart.title);
}

}  // namespace pleat::bench::plot
