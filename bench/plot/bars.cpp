#include <algorithm>
#include <cmath>

#include "pleat/bench/plot/scale.h"
#include "pleat/bench/plot/svg.h"

namespace pleat::bench::plot {
namespace {

constexpr double page_width = 900, margin = 16;
constexpr double bar_height = 15, bar_gap = 3, group_gap = 15, text_gap = 7;
constexpr double widest_column = 290;  ///< of group names beside the bars; longer ones go above them

const Bar* bar_at(const BarSeries& series, std::size_t group) {
  return group < series.bars.size() ? &series.bars[group] : nullptr;
}

/// What stands after a bar; a note alone where there is no value.
std::string value_text(const Bar* bar) {
  if (bar == nullptr) return "";
  if (!std::isfinite(bar->value)) return bar->note.empty() ? "no value" : bar->note;
  return number_text(bar->value) + (bar->note.empty() ? "" : " · " + bar->note);
}

/// Bars with their whiskers and texts, between a left edge and the edge of the picture.
class Bars {
 public:
  Bars(const BarChart& chart, double left)
      : chart_(chart), left_(left), scale_(Scale::linear_from_zero(longest())) {
    double reserved = 30;
    for (const BarSeries& series : chart.series)
      for (const Bar& bar : series.bars)
        if (std::isfinite(bar.value)) reserved = std::max(reserved, text_width(value_text(&bar), small_size));
    right_ = page_width - margin;
    axis_end_ = right_ - std::min(reserved + text_gap, (right_ - left) * 0.45);
    scale_.place(left, axis_end_);
  }

  void grid(Svg& out, double top, double bottom) const {
    for (const double tick : scale_.ticks())
      out.line(scale_(tick), top, scale_(tick), bottom, tick == 0 ? "axis" : "grid");
  }

  /// Tick labels, as far as they have room, and the axis' name; returns where they end.
  double axis(Svg& out, double y) const {
    double taken = -1e9;
    for (const double tick : scale_.ticks()) {
      const std::string label = number_text(tick);
      const double half = text_width(label, small_size) / 2;
      if (scale_(tick) - half < taken || scale_(tick) + half > page_width) continue;
      out.text(scale_(tick), y + 15, label, {.anchor = Anchor::middle, .size = small_size, .style = "quiet"});
      taken = scale_(tick) + half + 8;
    }
    const std::string name = shortened(chart_.axis, text_size, right_ - margin);
    const double half = text_width(name, text_size) / 2;
    const double middle = std::clamp((left_ + axis_end_) / 2, margin + half, right_ - half);
    out.text(middle, y + 36, name, {.anchor = Anchor::middle});
    return y + 48;
  }

  void draw(Svg& out, std::size_t group, std::size_t index, double top) const {
    const BarSeries& series = chart_.series[index];
    const Bar* bar = bar_at(series, group);
    if (bar == nullptr) return;
    const double middle = top + bar_height / 2;
    double end = left_;
    if (std::isfinite(bar->value)) {
      end = scale_(bar->value);
      out.bar({left_, top, end, top + bar_height}, index,
              series.name + ", " + chart_.groups[group] + ": " + value_text(bar));
      if (std::isfinite(bar->low) && std::isfinite(bar->high)) {
        const double low = scale_(bar->low), high = scale_(bar->high);
        out.line(low, middle, high, middle, "whisker");
        for (const double x : {low, high}) out.line(x, middle - 4, x, middle + 4, "whisker");
        end = std::max(end, high);
      }
    }
    const bool counts = std::isfinite(bar->value);
    out.text(end + text_gap, middle + small_size * 0.36,
             shortened(value_text(bar), small_size, right_ - end - text_gap),
             {.size = small_size, .style = counts ? "ink" : "quiet"});
  }

 private:
  double longest() const {
    double result = 0;
    for (const BarSeries& series : chart_.series)
      for (const Bar& bar : series.bars) {
        if (!std::isfinite(bar.value)) continue;
        result = std::max(result, bar.value);
        if (std::isfinite(bar.low) && std::isfinite(bar.high)) result = std::max(result, bar.high);
      }
    return result;
  }

  const BarChart& chart_;
  double left_;
  Scale scale_;
  double right_ = 0;     ///< where texts must end
  double axis_end_ = 0;  ///< where the longest bar ends
};

}  // namespace

std::string svg(const BarChart& chart) {
  Svg out;
  double y = out.heading(chart.title, chart.subtitle, page_width);
  if (chart.series.size() > 1) {
    std::vector<std::string> names;
    for (const BarSeries& series : chart.series) names.push_back(series.name);
    y = out.legend(names, margin, y, page_width - margin, false);
  }
  if (chart.groups.empty() || chart.series.empty()) {
    out.text(margin, y + 24, "nothing was measured", {.style = "quiet"});
    return out.document(page_width, y + 44, chart.title);
  }

  double column = 0;
  for (const std::string& group : chart.groups) column = std::max(column, text_width(group, text_size));
  const bool above = column > widest_column;
  const Bars bars(chart, above ? margin : margin + column + 12);
  const double heading = above ? text_size + 7 : 0;
  const double bars_height = static_cast<double>(chart.series.size()) * (bar_height + bar_gap) - bar_gap;
  const double step = heading + bars_height + group_gap;
  y += 6;
  const double bottom = y + static_cast<double>(chart.groups.size()) * step - group_gap + 6;
  if (!above) bars.grid(out, y - 4, bottom);
  for (std::size_t g = 0; g < chart.groups.size(); ++g, y += step) {
    if (above) {
      bars.grid(out, y + heading - 3, y + heading + bars_height + 3);
      out.text(margin, y + text_size, shortened(chart.groups[g], text_size, page_width - 2 * margin));
    } else {
      out.text(margin + column, y + bars_height / 2 + text_size * 0.36, chart.groups[g],
               {.anchor = Anchor::end});
    }
    for (std::size_t s = 0; s < chart.series.size(); ++s)
      bars.draw(out, g, s, y + heading + static_cast<double>(s) * (bar_height + bar_gap));
  }
  const double end = bars.axis(out, bottom);
  return out.document(page_width, end, chart.title);
}

}  // namespace pleat::bench::plot
