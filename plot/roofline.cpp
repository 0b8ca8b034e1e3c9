#include "pleat/plot/roofline.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "pleat/plot/svg.h"

namespace pleat::plot {
namespace {

using svg::number_text, svg::Point, svg::Rect, svg::Scale, svg::small_size, svg::text_width;

constexpr double page_width = 900, plot_height = 430, margin = 16, key_row = 19;
constexpr std::size_t longest_direct_name = 16, most_direct_names = 12;

bool usable(double value) { return std::isfinite(value) && value > 0; }

std::vector<Roof> usable_roofs(const std::vector<Roof>& roofs) {
  std::vector<Roof> result;
  std::copy_if(roofs.begin(), roofs.end(), std::back_inserter(result),
               [](const Roof& roof) { return usable(roof.value); });
  return result;
}

double highest(const std::vector<Roof>& roofs) {
  double value = 0;
  for (const Roof& roof : roofs) value = std::max(value, roof.value);
  return value;
}

std::size_t index_in(std::vector<std::string>& list, const std::string& text) {
  const auto found = std::find(list.begin(), list.end(), text);
  if (found == list.end()) list.push_back(text);
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), text) - list.begin());
}

/// Keeps labels off each other, off markers and off roofs.
class Room {
 public:
  explicit Room(Rect area) : area_(area) {}

  /// Takes the place if nothing is there.
  bool take(const Rect& place) {
    const bool free =
        place.inside(area_) &&
        std::none_of(taken_.begin(), taken_.end(), [&](const Rect& other) { return place.overlaps(other); });
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

 private:
  Rect area_;
  std::vector<Rect> taken_;
};

class Picture {
 public:
  explicit Picture(const Roofline& chart)
      : chart_(chart), peaks_(usable_roofs(chart.peaks)), bandwidths_(usable_roofs(chart.bandwidths)) {
    for (const RooflinePoint& point : chart.points)
      if (usable(point.intensity) && usable(point.gflops)) points_.push_back(point);
    for (const RooflinePoint& point : points_) {
      (void)index_in(series_, point.series);
      (void)index_in(problems_, point.name);
    }
  }

  std::string draw() {
    double top = out_.heading(chart_.title, chart_.subtitle, page_width);
    top = out_.legend(series_, margin, top, page_width - margin, true);
    if (points_.empty() && peaks_.empty() && bandwidths_.empty()) {
      out_.text({margin, top + 24}, "nothing was measured", {.style = "quiet"});
      return out_.document(page_width, top + 44, chart_.title);
    }
    make_scales();
    const Rect area{svg::y_axis_width(y_), top + 10, page_width - 28, top + 10 + plot_height};
    x_.place(area.left, area.right);
    y_.place(area.bottom, area.top);
    const double end =
        out_.axes(area, x_, x_.ticks(), "arithmetic intensity [FLOP/byte]", y_, "performance [GFLOP/s]");
    Room room(area);
    for (const RooflinePoint& point : points_) room.block_around(place(point), 7);
    draw_roofs(area, room);
    const bool short_names = std::all_of(problems_.begin(), problems_.end(), [](const std::string& name) {
      return name.size() <= longest_direct_name;
    });
    const bool numbers = !short_names || problems_.size() > most_direct_names || !label_points(room, false);
    if (numbers) label_points(room, true);
    for (const RooflinePoint& point : points_)
      out_.marker(place(point), index_in(series_, point.series),
                  point.name + ", " + point.series + ": " + number_text(point.gflops) + " GFLOP/s at " +
                      number_text(point.intensity) + " FLOP/byte");
    return out_.document(page_width, draw_key(end, numbers), chart_.title);
  }

 private:
  Point place(const RooflinePoint& point) const { return {x_(point.intensity), y_(point.gflops)}; }

  void make_scales() {
    double x_low = std::numeric_limits<double>::infinity(), x_high = 0, y_low = x_low,
           y_high = highest(peaks_);
    for (const RooflinePoint& point : points_) {
      x_low = std::min(x_low, point.intensity / 1.6), x_high = std::max(x_high, point.intensity * 1.6);
      y_low = std::min(y_low, point.gflops / 1.6), y_high = std::max(y_high, point.gflops);
    }
    // The ridges, where a memory just keeps up with the arithmetic, belong to the picture.
    for (const Roof& peak : peaks_) {
      y_low = std::min(y_low, peak.value / 20);
      for (const Roof& bandwidth : bandwidths_) {
        x_low = std::min(x_low, peak.value / bandwidth.value / 4);
        x_high = std::max(x_high, peak.value / bandwidth.value * 6);
      }
    }
    if (!usable(x_low) || x_high == 0) x_low = 0.1, x_high = 100;
    if (y_high == 0) y_high = highest(bandwidths_) * x_high;
    if (!usable(y_low)) y_low = y_high / 100;
    x_ = Scale::logarithmic(x_low, x_high);
    y_ = Scale::logarithmic(y_low, y_high * 1.6);
  }

  void draw_roofs(const Rect& area, Room& room) {
    struct Line {
      std::string text;
      Point from, to;
    };
    std::vector<Line> lines;
    const double peak = highest(peaks_), bandwidth = highest(bandwidths_);
    for (const Roof& roof : bandwidths_) {
      const double first = std::max(x_.low(), y_.low() / roof.value);
      const double last =
          std::min({x_.high(), y_.high() / roof.value, peak > 0 ? peak / roof.value : x_.high()});
      if (first < last)
        lines.push_back({roof.name + ": " + number_text(roof.value) + " GB/s",
                         {x_(first), y_(roof.value * first)},
                         {x_(last), y_(roof.value * last)}});
    }
    for (const Roof& roof : peaks_) {
      const double first = bandwidth > 0 ? std::max(x_.low(), roof.value / bandwidth) : x_.low();
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
      if (!label_roof(line.text, line.from, line.to, room)) unlabelled_.push_back("roof " + line.text);
  }

  /// Under the roof or above it, from its right end to the left until there is room.
  bool label_roof(const std::string& text, Point from, Point to, Room& room) {
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
    for (const RooflinePoint& point : points_) {
      const auto [found, fresh] =
          highest_points.try_emplace({index_in(problems_, point.name), point.intensity}, place(point));
      found->second.y = std::min(found->second.y, place(point).y);
    }
    std::vector<std::pair<Point, std::pair<std::string, Rect>>> labels;
    for (const auto& [key, at] : highest_points) {
      const std::string text = numbers ? std::to_string(key.first + 1) : problems_[key.first];
      if (Rect box{}; find_room(room, at, text_width(text, small_size) + 2, box))
        labels.push_back({at, {text, box}});
      else if (!numbers)
        return false;
    }
    for (const auto& [at, label] : labels) {
      const auto& [text, box] = label;
      const Point near{std::clamp(at.x, box.left, box.right), std::clamp(at.y, box.top, box.bottom)};
      if (std::hypot(near.x - at.x, near.y - at.y) > 16) out_.line(at, near, "leader");
      out_.text({box.left + 1, box.bottom - 3}, text, {.size = small_size});
    }
    return true;
  }

  /// Takes the nearest free place around a point, directions above first.
  static bool find_room(Room& room, Point at, double width, Rect& box) {
    const double height = small_size + 3;
    for (double distance = 9; distance < 90; distance += 7)
      for (const double degrees : {90., 45., 0., 135., 315., 180., 225., 270., 67., 22., 112., 157.}) {
        const double radians = degrees * std::acos(-1.0) / 180;
        const double x = at.x + std::cos(radians) * (distance + width / 2);
        const double y = at.y - std::sin(radians) * (distance + height / 2);
        box = {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
        if (room.take(box)) return true;
      }
    return false;
  }

  /// What numbers stand for, and roofs whose labels found no room, in columns as wide as the longest; returns
  /// where it ends.
  double draw_key(double top, bool numbers) {
    std::vector<std::string> entries;
    for (std::size_t p = 0; numbers && p < problems_.size(); ++p)
      entries.push_back(std::to_string(p + 1) + " · " + problems_[p]);
    entries.insert(entries.end(), unlabelled_.begin(), unlabelled_.end());
    if (entries.empty()) return top;
    double widest = 1;
    for (std::string& entry : entries) {
      entry = svg::shortened(entry, small_size, page_width - 2 * margin);
      widest = std::max(widest, text_width(entry, small_size) + 24);
    }
    const auto columns = static_cast<std::size_t>(std::max(1.0, (page_width - 2 * margin + 24) / widest));
    const std::size_t rows = (entries.size() + columns - 1) / columns;
    for (std::size_t i = 0; i < entries.size(); ++i)
      out_.text({margin + static_cast<double>(i / rows) * widest,
                 top + 10 + static_cast<double>(i % rows) * key_row + small_size},
                entries[i], {.size = small_size});
    return top + 22 + static_cast<double>(rows) * key_row;
  }

  const Roofline& chart_;
  svg::Canvas out_;
  std::vector<Roof> peaks_, bandwidths_;
  std::vector<RooflinePoint> points_;
  std::vector<std::string> series_, problems_;
  std::vector<std::string> unlabelled_;  ///< roofs whose labels found no room
  Scale x_, y_;
};

}  // namespace

std::string to_svg(const Roofline& chart) { return Picture(chart).draw(); }

}  // namespace pleat::plot
