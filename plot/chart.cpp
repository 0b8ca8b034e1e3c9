// The charts: where bars, lines, roofs and their labels stand on the canvas of svg.h. Labels are placed so
// that none covers another; what finds no room goes to a key or is left out.
#include "pleat/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"

namespace pleat::plot {
namespace {

using svg::Canvas, svg::number_text, svg::Rect, svg::Scale, svg::shortened, svg::small_size, svg::text_size,
    svg::text_width;

constexpr double margin = 16, page_width = 900;  ///< of bars and rooflines

const std::string& name_of(const std::string& name) { return name; }
const std::string& name_of(const auto& entry) { return entry.name; }

/// The index of the entry of that name, which is added when it is new.
template <class Entry>
std::size_t index_of(std::vector<Entry>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Entry& entry) { return name_of(entry) == name; });
  const auto index = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(Entry{name});
  return index;
}

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& all) {
  std::vector<std::string> names;
  for (const Entry& entry : all) names.push_back(entry.name);
  return names;
}

std::string nothing(Canvas& out, double width, double top, const std::string& title) {
  out.text({margin, top + 24}, "nothing was measured", {.style = "quiet"});
  return out.document(width, top + 44, title);
}

// --- bars

constexpr double bar_height = 15, bar_gap = 3, text_gap = 7, right_end = page_width - margin;

/// What is written behind a bar; a note alone where there is no value.
std::string value_text(const Bar& bar) {
  if (!std::isfinite(bar.value)) return bar.note.empty() ? "no value" : bar.note;
  return number_text(bar.value) + (bar.note.empty() ? "" : " · " + bar.note);
}

bool has_whisker(const Bar& bar) { return std::isfinite(bar.low) && std::isfinite(bar.high); }

void draw(Canvas& out, const Bar& bar, const Scale& scale, double top, std::size_t series,
          const std::string& names) {
  const double middle = top + bar_height / 2;
  const bool counts = std::isfinite(bar.value);
  const double left = scale(scale.low());
  double end = counts ? scale(bar.value) : left;
  if (counts) out.bar({left, top, end, top + bar_height}, series, names + ": " + value_text(bar));
  if (counts && has_whisker(bar)) {
    const double low = scale(bar.low), high = scale(bar.high);
    out.line({low, middle}, {high, middle}, "whisker");
    for (const double x : {low, high}) out.line({x, middle - 4}, {x, middle + 4}, "whisker");
    end = std::max(end, high);
  }
  out.text({end + text_gap, middle + small_size * 0.36},
           shortened(value_text(bar), small_size, right_end - end - text_gap),
           {.size = small_size, .style = counts ? "ink" : "quiet"});
}

// --- lines

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
  std::vector<LineChart::Line> lines = chart.lines;
  for (LineChart::Line& line : lines) {
    std::erase_if(line.points, [&](const Point& point) {
      return !shows(point.x, chart.log_x) || !shows(point.y, chart.log_y);
    });
    for (const Point& point : line.points) x_range.add(point.x), y_range.add(point.y), xs.insert(point.x);
    std::ranges::stable_sort(line.points, {}, &Point::x);
  }
  top = out.legend(names_of(lines), left + margin, top, left + width - margin, true) + 10;
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
    const std::vector<Point>& points = lines[s].points;
    std::vector<Point> pixels;
    for (const Point& point : points) pixels.push_back({x(point.x), y(point.y)});
    out.polyline(pixels, s);
    for (std::size_t i = 0; i < pixels.size() && pixels.size() <= most_markers; ++i)
      out.marker(pixels[i], s,
                 lines[s].name + ": " + number_text(points[i].y) + " at " + number_text(points[i].x));
  }
  return end;
}

// --- rooflines

constexpr std::size_t longest_direct_name = 16, most_direct_names = 12;

bool usable(double value) { return std::isfinite(value) && value > 0; }

double highest(const std::vector<Roof>& roofs) {
  return roofs.empty() ? 0 : std::ranges::max(roofs, {}, &Roof::value).value;
}

/// Keeps labels off each other, off markers and off roofs.
class Room {
 public:
  explicit Room(Rect area) : area_(area) {}

  /// Takes the place if nothing is there.
  bool take(const Rect& place) {
    const bool free = place.inside(area_) &&
                      std::ranges::none_of(taken_, [&](const Rect& other) { return place.overlaps(other); });
    if (free) taken_.push_back(place);
    return free;
  }
  void block_around(Point at, double reach) {
    taken_.push_back({at.x - reach, at.y - reach, at.x + reach, at.y + reach});
  }
  void block_line(Point from, Point to) {
    const int pieces = std::max(1, static_cast<int>(std::hypot(to.x - from.x, to.y - from.y) / 4));
    for (int i = 0; i <= pieces; ++i)
      block_around({from.x + (to.x - from.x) * i / pieces, from.y + (to.y - from.y) * i / pieces}, 2);
  }
  /// Takes the nearest free place around a point, directions above first.
  std::optional<Rect> take_near(Point at, double width) {
    const double height = small_size + 3;
    for (double distance = 9; distance < 90; distance += 7)
      for (const double degrees : {90., 45., 0., 135., 315., 180., 225., 270., 67., 22., 112., 157.}) {
        const double radians = degrees * std::acos(-1.0) / 180;
        const double x = at.x + std::cos(radians) * (distance + width / 2);
        const double y = at.y - std::sin(radians) * (distance + height / 2);
        const Rect box{x - width / 2, y - height / 2, x + width / 2, y + height / 2};
        if (take(box)) return box;
      }
    return {};
  }

 private:
  Rect area_;
  std::vector<Rect> taken_;
};

class RooflinePicture {
 public:
  /// What is not usable has been left out of the chart.
  explicit RooflinePicture(const Roofline& chart)
      : chart_(chart), peak_(highest(chart.peaks)), bandwidth_(highest(chart.bandwidths)) {
    for (const RooflinePoint& point : chart.points) {
      index_of(series_, point.series);
      index_of(problems_, point.name);
    }
    make_scales();
  }

  std::string draw() {
    double top = out_.heading(chart_.title, chart_.subtitle, page_width);
    top = out_.legend(series_, margin, top, page_width - margin, true);
    if (chart_.points.empty() && chart_.peaks.empty() && chart_.bandwidths.empty())
      return nothing(out_, page_width, top, chart_.title);
    const Rect area{svg::y_axis_width(y_), top + 10, page_width - 28, top + 440};
    x_.place(area.left, area.right);
    y_.place(area.bottom, area.top);
    const double end =
        out_.axes(area, x_, x_.ticks(), "arithmetic intensity [FLOP/byte]", y_, "performance [GFLOP/s]");
    Room room(area);
    for (const RooflinePoint& point : chart_.points) room.block_around(place(point), 7);
    draw_roofs(area, room);
    const bool short_names = std::ranges::all_of(
        problems_, [](const std::string& name) { return name.size() <= longest_direct_name; });
    const bool numbers = !short_names || problems_.size() > most_direct_names || !label_points(room, false);
    if (numbers) label_points(room, true);
    for (const RooflinePoint& point : chart_.points)
      out_.marker(place(point), index_of(series_, point.series),
                  point.name + ", " + point.series + ": " + number_text(point.gflops) + " GFLOP/s at " +
                      number_text(point.intensity) + " FLOP/byte");
    return out_.document(page_width, draw_key(end, numbers), chart_.title);
  }

 private:
  struct Line {
    std::string text;
    Point from, to;
  };

  Point place(const RooflinePoint& point) const { return {x_(point.intensity), y_(point.gflops)}; }

  void make_scales() {
    Range x, y{.high = peak_};
    for (const RooflinePoint& point : chart_.points) {
      x.add(point.intensity / 1.6), x.add(point.intensity * 1.6);
      y.add(point.gflops / 1.6), y.add(point.gflops);
    }
    // The ridges, where a memory just keeps up with the arithmetic, belong to the picture.
    for (const Roof& peak : chart_.peaks) {
      y.add(peak.value / 20);
      for (const Roof& bandwidth : chart_.bandwidths)
        x.add(peak.value / bandwidth.value / 4), x.add(peak.value / bandwidth.value * 6);
    }
    if (!usable(x.low) || x.high == 0) x = {.low = 0.1, .high = 100};
    if (y.high == 0) y.high = bandwidth_ * x.high;
    if (!usable(y.low)) y.low = y.high / 100;
    x_ = Scale::logarithmic(x.low, x.high);
    y_ = Scale::logarithmic(y.low, y.high * 1.6);
  }

  void draw_roofs(const Rect& area, Room& room) {
    std::vector<Line> lines;
    for (const Roof& roof : chart_.bandwidths) {
      const double first = std::max(x_.low(), y_.low() / roof.value);
      const double last =
          std::min({x_.high(), y_.high() / roof.value, peak_ > 0 ? peak_ / roof.value : x_.high()});
      if (first < last)
        lines.push_back({roof.name + ": " + number_text(roof.value) + " GB/s",
                         {x_(first), y_(roof.value * first)},
                         {x_(last), y_(roof.value * last)}});
    }
    for (const Roof& roof : chart_.peaks) {
      const double first = bandwidth_ > 0 ? std::max(x_.low(), roof.value / bandwidth_) : x_.low();
      if (first < x_.high())
        lines.push_back({roof.name + ": " + number_text(roof.value) + " GFLOP/s",
                         {x_(first), y_(roof.value)},
                         {area.right, y_(roof.value)}});
    }
    for (const Line& line : lines) {
      out_.line(line.from, line.to, "roof");
      room.block_line(line.from, line.to);
    }
    for (const Line& line : lines)
      if (!label(line, room)) unlabelled_.push_back("roof " + line.text);
  }

  /// Under the roof or above it, from its right end to the left until there is room.
  bool label(const Line& roof, Room& room) {
    const auto& [text, from, to] = roof;
    const double width = text_width(text, small_size);
    for (double share = 1; share >= 0; share -= 0.04) {
      const Point at{from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share};
      // Under a roof that rises there is room on its right, above it on its left.
      const double rise = from.y - to.y > 1 ? width + 10 : -4;
      for (const auto& [right, base] :
           {std::pair(at.x - 4, at.y - 5), {at.x + rise, at.y + small_size + 3}}) {
        if (!room.take({right - width, base - small_size, right, base + 1.5})) continue;
        out_.text({right, base}, text, {.anchor = "end", .size = small_size, .style = "quiet"});
        return true;
      }
    }
    return false;
  }

  /// A name (or its number in the key) beside the highest of the points of a problem and intensity. False,
  /// and nothing drawn, when a name finds no room; a number that finds none is left out, the key has it.
  bool label_points(Room room, bool numbers) {
    std::map<std::pair<std::size_t, double>, Point> highest_points;  // by problem and intensity
    for (const RooflinePoint& point : chart_.points) {
      const auto [found, is_new] =
          highest_points.try_emplace({index_of(problems_, point.name), point.intensity}, place(point));
      found->second.y = std::min(found->second.y, place(point).y);
    }
    Canvas labels = out_;
    for (const auto& [key, at] : highest_points) {
      const std::string text = numbers ? std::to_string(key.first + 1) : problems_[key.first];
      const std::optional<Rect> box = room.take_near(at, text_width(text, small_size) + 2);
      if (!box && !numbers) return false;
      if (!box) continue;
      const Point near{std::clamp(at.x, box->left, box->right), std::clamp(at.y, box->top, box->bottom)};
      if (std::hypot(near.x - at.x, near.y - at.y) > 16) labels.line(at, near, "leader");
      labels.text({box->left + 1, box->bottom - 3}, text, {.size = small_size});
    }
    out_ = std::move(labels);
    return true;
  }

  /// What numbers stand for, and roofs whose labels found no room, in columns as wide as the longest; returns
  /// where it ends.
  double draw_key(double top, bool numbers) {
    std::vector<std::string> entries;
    for (std::size_t p = 0; numbers && p < problems_.size(); ++p)
      entries.push_back(std::to_string(p + 1) + " · " + problems_[p]);
    entries.insert(entries.end(), unlabelled_.begin(), unlabelled_.end());
    if (entries.empty()) return top;
    constexpr double width = page_width - 2 * margin, gap = 24, row = 19;
    double widest = 1;
    for (std::string& entry : entries) {
      entry = shortened(entry, small_size, width);
      widest = std::max(widest, text_width(entry, small_size) + gap);
    }
    const auto columns = static_cast<std::size_t>(std::max(1.0, (width + gap) / widest));
    const std::size_t rows = (entries.size() + columns - 1) / columns;
    for (std::size_t i = 0; i < entries.size(); ++i)
      out_.text({margin + static_cast<double>(i / rows) * widest,
                 top + 10 + static_cast<double>(i % rows) * row + small_size},
                entries[i], {.size = small_size});
    return top + 22 + static_cast<double>(rows) * row;
  }

  const Roofline& chart_;
  double peak_, bandwidth_;  ///< the highest; 0 without
  Canvas out_;
  std::vector<std::string> series_, problems_;
  std::vector<std::string> unlabelled_;  ///< roofs whose labels found no room
  Scale x_ = Scale::logarithmic(0.1, 100), y_ = x_;
};

/// Adds a line with its last value in its name, over the epochs from 1 on.
void add(LineChart& chart, const Curve& curve) {
  std::string name = curve.name;
  if (!curve.values.empty())
    name += chart.percent ? fmt::format(" {:.1f} %", 100 * curve.values.back())
                          : fmt::format(" {:.3f}", curve.values.back());
  double epoch = 0;
  for (const double value : curve.values) chart.add(name, {++epoch, value});
}

}  // namespace

void BarChart::add(const std::string& group, const std::string& series_name, const Bar& bar) {
  const std::size_t place = index_of(groups, group);
  std::vector<Bar>& bars = series[index_of(series, series_name)].bars;
  bars.resize(std::max(bars.size(), place + 1));
  bars[place] = bar;
}

void LineChart::add(const std::string& line_name, const Point& point) {
  lines[index_of(lines, line_name)].points.push_back(point);
}

std::string to_svg(const BarChart& chart) {
  constexpr double group_gap = 15, widest_column = 290;  // of group names beside the bars, else above them
  constexpr double step = bar_height + bar_gap;
  Canvas out;
  double y = out.heading(chart.title, chart.subtitle, page_width);
  if (chart.series.size() > 1) y = out.legend(names_of(chart.series), margin, y, right_end, false);
  if (chart.groups.empty() || chart.series.empty()) return nothing(out, page_width, y, chart.title);

  double column = 0, longest = 0, text = 30;
  for (const std::string& group : chart.groups) column = std::max(column, text_width(group, text_size));
  for (const BarChart::Series& series : chart.series)
    for (const Bar& bar : series.bars) {
      if (!std::isfinite(bar.value)) continue;
      longest = std::max({longest, bar.value, has_whisker(bar) ? bar.high : 0});
      text = std::max(text, text_width(value_text(bar), small_size));
    }
  const bool above = column > widest_column;
  const double left = above ? margin : margin + column + 12;
  const double end = right_end - std::min(text + text_gap, (right_end - left) * 0.45);  // of the longest bar
  Scale scale = Scale::linear(0, longest > 0 ? longest : 1);
  scale.place(left, end);
  const auto grid = [&](double top, double bottom) {
    for (const double tick : scale.ticks())
      out.line({scale(tick), top}, {scale(tick), bottom}, tick == 0 ? "axis" : "grid");
  };

  const double heading = above ? text_size + 7 : 0;
  const double height = static_cast<double>(chart.series.size()) * step - bar_gap;
  y += 6;
  const double bottom =
      y + static_cast<double>(chart.groups.size()) * (heading + height + group_gap) - group_gap + 6;
  if (!above) grid(y - 4, bottom);
  for (std::size_t g = 0; g < chart.groups.size(); ++g, y += heading + height + group_gap) {
    if (above) {
      grid(y + heading - 3, y + heading + height + 3);
      out.text({margin, y + text_size}, shortened(chart.groups[g], text_size, page_width - 2 * margin));
    } else {
      out.text({margin + column, y + height / 2 + text_size * 0.36}, chart.groups[g], {.anchor = "end"});
    }
    double top = y + heading;
    for (std::size_t s = 0; s < chart.series.size(); ++s, top += step)
      if (const auto& [name, bars] = chart.series[s]; g < bars.size())
        draw(out, bars[g], scale, top, s, name + ", " + chart.groups[g]);
  }
  out.tick_labels(scale, scale.ticks(), bottom + 15, page_width);
  const std::string axis = shortened(chart.axis, text_size, right_end - margin);
  const double half = text_width(axis, text_size) / 2;
  out.text({std::clamp((left + end) / 2, margin + half, right_end - half), bottom + 36}, axis,
           {.anchor = "middle"});
  return out.document(page_width, bottom + 48, chart.title);
}

std::string to_svg(const LineChart& chart) {
  constexpr double width = 820, height = 360;
  Canvas out;
  const double top = out.heading(chart.title, chart.subtitle, width);
  return out.document(width, draw(out, chart, 0, top, width, height), chart.title);
}

std::string to_svg(const std::string& title, const std::vector<LineChart>& charts) {
  constexpr double width = 520, height = 260;
  const double whole = width * static_cast<double>(std::max<std::size_t>(charts.size(), 1));
  Canvas out;
  const double top = out.heading(title, "", whole) + text_size + 4;
  if (charts.empty()) return nothing(out, whole, top, title);
  double left = 0, end = 0;
  for (const LineChart& chart : charts) {
    out.text({left + margin, top}, shortened(chart.title, text_size, width - 2 * margin),
             {.style = "strong"});
    end = std::max(end, draw(out, chart, left, top + 8, width, height));
    left += width;
  }
  return out.document(whole, end, title);
}

std::string to_svg(const Roofline& chart) {
  Roofline usable_part = chart;
  const auto is_no_roof = [](const Roof& roof) { return !usable(roof.value); };
  std::erase_if(usable_part.peaks, is_no_roof);
  std::erase_if(usable_part.bandwidths, is_no_roof);
  std::erase_if(usable_part.points,
                [](const RooflinePoint& point) { return !usable(point.intensity) || !usable(point.gflops); });
  return RooflinePicture(usable_part).draw();
}

void write_learning_curves(const std::filesystem::path& file, const std::string& title,
                           const std::vector<Curve>& losses, const std::vector<Curve>& accuracies) {
  LineChart loss{.title = "Loss", .x_axis = "epoch"};
  LineChart accuracy{.title = "Accuracy", .x_axis = "epoch", .percent = true};
  for (const Curve& curve : losses) add(loss, curve);
  for (const Curve& curve : accuracies) add(accuracy, curve);
  pleat::write_file("learning curves", file, to_svg(title, {loss, accuracy}));
}

}  // namespace pleat::plot
