#include "pleat/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "pleat/plot/svg.h"

namespace pleat::plot {
namespace {

using svg::Canvas, svg::number_text, svg::Rect, svg::Scale, svg::shortened, svg::small_size, svg::text_size,
    svg::text_width;

constexpr double margin = 16;

/// The entry of that name; added when it is new.
template <class Entry>
Entry& entry(std::vector<Entry>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& e) { return e.name == name; });
  if (found != all.end()) return *found;
  all.emplace_back().name = name;
  return all.back();
}

std::string nothing(Canvas& out, double width, double top, const std::string& title) {
  out.text({margin, top + 24}, "nothing was measured", {.style = "quiet"});
  return out.document(width, top + 44, title);
}

/// What is written behind a bar; a note alone where there is no value.
std::string value_text(const Bar& bar) {
  if (!std::isfinite(bar.value)) return bar.note.empty() ? "no value" : bar.note;
  return number_text(bar.value) + (bar.note.empty() ? "" : " · " + bar.note);
}

/// The places of bars, and their drawing.
class Bars {
 public:
  static constexpr double page_width = 900, bar_height = 15, bar_gap = 3;

  Bars(const BarChart& chart, double left) : chart_(chart), left_(left) {
    double longest = 0, text = 30;
    for (const BarChart::Series& series : chart.series)
      for (const Bar& bar : series.bars) {
        if (!std::isfinite(bar.value)) continue;
        longest = std::max({longest, bar.value, has_whisker(bar) ? bar.high : 0});
        text = std::max(text, text_width(value_text(bar), small_size));
      }
    end_ = right - std::min(text + text_gap, (right - left) * 0.45);
    scale_ = Scale::linear(0, longest > 0 ? longest : 1);
    scale_.place(left, end_);
  }

  void grid(Canvas& out, double top, double bottom) const {
    for (const double tick : scale_.ticks())
      out.line({scale_(tick), top}, {scale_(tick), bottom}, tick == 0 ? "axis" : "grid");
  }

  /// Tick labels, as far as they have room, and the name of the axis; returns where they end.
  double axis(Canvas& out, double y) const {
    double taken = -1e9;
    for (const double tick : scale_.ticks()) {
      const std::string label = number_text(tick);
      const double half = text_width(label, small_size) / 2;
      if (scale_(tick) - half < taken || scale_(tick) + half > page_width) continue;
      out.text({scale_(tick), y + 15}, label, {.anchor = "middle", .size = small_size, .style = "quiet"});
      taken = scale_(tick) + half + 8;
    }
    const std::string name = shortened(chart_.axis, text_size, right - margin);
    const double half = text_width(name, text_size) / 2;
    out.text({std::clamp((left_ + end_) / 2, margin + half, right - half), y + 36}, name,
             {.anchor = "middle"});
    return y + 48;
  }

  void draw(Canvas& out, std::size_t group, std::size_t index, double top) const {
    const BarChart::Series& series = chart_.series[index];
    if (group >= series.bars.size()) return;
    const Bar& bar = series.bars[group];
    const double middle = top + bar_height / 2;
    double end = left_;
    const bool counts = std::isfinite(bar.value);
    if (counts) {
      end = scale_(bar.value);
      out.bar({left_, top, end, top + bar_height}, index,
              series.name + ", " + chart_.groups[group] + ": " + value_text(bar));
      if (has_whisker(bar)) {
        const double low = scale_(bar.low), high = scale_(bar.high);
        out.line({low, middle}, {high, middle}, "whisker");
        for (const double x : {low, high}) out.line({x, middle - 4}, {x, middle + 4}, "whisker");
        end = std::max(end, high);
      }
    }
    out.text({end + text_gap, middle + small_size * 0.36},
             shortened(value_text(bar), small_size, right - end - text_gap),
             {.size = small_size, .style = counts ? "ink" : "quiet"});
  }

 private:
  static constexpr double text_gap = 7, right = page_width - margin;  // texts end at `right`

  static bool has_whisker(const Bar& bar) { return std::isfinite(bar.low) && std::isfinite(bar.high); }

  const BarChart& chart_;
  double left_, end_;  // of the longest bar
  Scale scale_;
};

constexpr std::size_t most_own_ticks = 16;  ///< so many values of x get ticks of their own
constexpr std::size_t most_markers = 40;    ///< of a line

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
  Scale scale(bool log) const {
    if (log) return Scale::logarithmic(low, high);
    // From zero on, unless the values never come near it.
    return Scale::linear(low >= 0 && low < 0.7 * high ? 0 : low, high);
  }
};

/// Draws below `top`, from `left` on; returns where it ends.
double draw(Canvas& out, const LineChart& chart, double left, double top, double width, double height) {
  const auto shows = [](double value, bool log) { return std::isfinite(value) && (!log || value > 0); };
  Range x_range, y_range;
  std::set<double> xs;
  std::vector<std::string> names;
  std::vector<std::vector<Point>> lines;
  for (const LineChart::Line& line : chart.lines) {
    names.push_back(line.name);
    std::vector<Point>& points = lines.emplace_back();
    for (const Point& point : line.points) {
      if (!shows(point.x, chart.log_x) || !shows(point.y, chart.log_y)) continue;
      points.push_back(point);
      x_range.add(point.x), y_range.add(point.y);
      xs.insert(point.x);
    }
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  }
  top = out.legend(names, left + margin, top, left + width - margin, true) + 10;
  if (xs.empty()) {
    out.text({left + margin, top + 14}, "nothing was measured", {.style = "quiet"});
    return top + 34;
  }
  Scale x = x_range.scale(chart.log_x), y = y_range.scale(chart.log_y);
  if (x_range.low < x_range.high) x.crop(x_range.low, x_range.high);
  const Rect area{left + svg::y_axis_width(y, chart.percent), top, left + width - 28, top + height};
  x.place(area.left, area.right);
  y.place(area.bottom, area.top);
  const bool own_ticks = xs.size() > 1 && xs.size() <= most_own_ticks;
  const double end = out.axes(area, x, own_ticks ? std::vector<double>(xs.begin(), xs.end()) : x.ticks(),
                              chart.x_axis, y, chart.y_axis, chart.percent);
  for (std::size_t s = 0; s < lines.size(); ++s) {
    std::vector<svg::Point> pixels;
    for (const Point& point : lines[s]) pixels.push_back({x(point.x), y(point.y)});
    out.polyline(pixels, s);
    for (std::size_t i = 0; i < pixels.size() && pixels.size() <= most_markers; ++i)
      out.marker(pixels[i], s,
                 names[s] + ": " + number_text(lines[s][i].y) + " at " + number_text(lines[s][i].x));
  }
  return end;
}

}  // namespace

void BarChart::add(const std::string& group, const std::string& series_name, const Bar& bar) {
  const auto place =
      static_cast<std::size_t>(std::find(groups.begin(), groups.end(), group) - groups.begin());
  if (place == groups.size()) groups.push_back(group);
  std::vector<Bar>& bars = entry(series, series_name).bars;
  bars.resize(std::max(bars.size(), place + 1));
  bars[place] = bar;
}

void LineChart::add(const std::string& line_name, const Point& point) {
  entry(lines, line_name).points.push_back(point);
}

std::string to_svg(const BarChart& chart) {
  constexpr double group_gap = 15, widest_column = 290;  // of group names beside the bars, else above them
  constexpr double step = Bars::bar_height + Bars::bar_gap, page_width = Bars::page_width;
  Canvas out;
  double y = out.heading(chart.title, chart.subtitle, page_width);
  if (chart.series.size() > 1) {
    std::vector<std::string> names;
    for (const BarChart::Series& series : chart.series) names.push_back(series.name);
    y = out.legend(names, margin, y, page_width - margin, false);
  }
  if (chart.groups.empty() || chart.series.empty()) return nothing(out, page_width, y, chart.title);

  double column = 0;
  for (const std::string& group : chart.groups) column = std::max(column, text_width(group, text_size));
  const bool above = column > widest_column;
  const Bars bars(chart, above ? margin : margin + column + 12);
  const double heading = above ? text_size + 7 : 0;
  const double height = static_cast<double>(chart.series.size()) * step - Bars::bar_gap;
  y += 6;
  const double bottom =
      y + static_cast<double>(chart.groups.size()) * (heading + height + group_gap) - group_gap + 6;
  if (!above) bars.grid(out, y - 4, bottom);
  for (std::size_t g = 0; g < chart.groups.size(); ++g, y += heading + height + group_gap) {
    if (above) {
      bars.grid(out, y + heading - 3, y + heading + height + 3);
      out.text({margin, y + text_size}, shortened(chart.groups[g], text_size, page_width - 2 * margin));
    } else {
      out.text({margin + column, y + height / 2 + text_size * 0.36}, chart.groups[g], {.anchor = "end"});
    }
    for (std::size_t s = 0; s < chart.series.size(); ++s)
      bars.draw(out, g, s, y + heading + static_cast<double>(s) * step);
  }
  return out.document(page_width, bars.axis(out, bottom), chart.title);
}

std::string to_svg(const LineChart& chart) {
  constexpr double page_width = 820, height = 360;
  Canvas out;
  const double top = out.heading(chart.title, chart.subtitle, page_width);
  return out.document(page_width, draw(out, chart, 0, top, page_width, height), chart.title);
}

std::string to_svg(const std::string& title, const std::vector<LineChart>& charts) {
  constexpr double width = 520, height = 260;
  const double page_width = width * static_cast<double>(std::max<std::size_t>(charts.size(), 1));
  Canvas out;
  const double top = out.heading(title, "", page_width) + text_size + 4;
  if (charts.empty()) return nothing(out, page_width, top, title);
  double left = 0, end = 0;
  for (const LineChart& chart : charts) {
    out.text({left + margin, top}, shortened(chart.title, text_size, width - 2 * margin),
             {.style = "strong"});
    end = std::max(end, draw(out, chart, left, top + 8, width, height));
    left += width;
  }
  return out.document(page_width, end, title);
}

}  // namespace pleat::plot
