#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "pleat/bench/plot/frame.h"

namespace pleat::bench::plot {
namespace {

constexpr double page_width = 900, plot_height = 430, margin = 16, key_row = 19;
constexpr double marker_reach = 7;
constexpr std::size_t longest_direct_name = 16, most_direct_names = 12;

bool usable(double value) { return std::isfinite(value) && value > 0; }

/// A label: what points of one problem and intensity share.
struct Column {
  std::size_t problem;
  std::vector<std::size_t> points;
};

/// Keeps labels off each other, off markers and off roofs.
class Room {
 public:
  explicit Room(Rect area) : area_(area) {}

  bool is_free(const Rect& place) const {
    return place.inside(area_) && std::none_of(taken_.begin(), taken_.end(),
                                               [&](const Rect& other) { return place.overlaps(other); });
  }
  void take(const Rect& place) { taken_.push_back(place); }
  void take_line(double x1, double y1, double x2, double y2) {
    const int pieces = std::max(1, static_cast<int>(std::hypot(x2 - x1, y2 - y1) / 4));
    for (int i = 0; i <= pieces; ++i) {
      const double x = x1 + (x2 - x1) * i / pieces, y = y1 + (y2 - y1) * i / pieces;
      take({x - 2, y - 2, x + 2, y + 2});
    }
  }

 private:
  Rect area_;
  std::vector<Rect> taken_;
};

class Picture {
 public:
  explicit Picture(const Roofline& chart) : chart_(chart) {
    for (const Roof& roof : chart.peaks)
      if (usable(roof.value)) peaks_.push_back(roof);
    for (const Roof& roof : chart.bandwidths)
      if (usable(roof.value)) bandwidths_.push_back(roof);
    for (const RooflinePoint& point : chart.points)
      if (usable(point.intensity) && usable(point.gflops)) add(point);
  }

  std::string draw() {
    double top = out_.heading(chart_.title, chart_.subtitle, page_width);
    top = out_.legend(series_, margin, top, page_width - margin, true);
    if (points_.empty() && peaks_.empty() && bandwidths_.empty()) {
      out_.text(margin, top + 24, "nothing was measured", {.style = "quiet"});
      return out_.document(page_width, top + 44, chart_.title);
    }
    make_scales();
    const Frame frame = make_frame(x_, y_, page_width, top + 10, plot_height);
    const double end = draw_axes(out_, frame, x_, x_.ticks(), y_, "arithmetic intensity [FLOP/byte]",
                                 "performance [GFLOP/s]");
    Room room(frame.area);
    for (const Place& place : places()) room.take(around(place));
    draw_roofs(frame, room);
    const bool direct = columns_.size() <= most_direct_names &&
                        std::all_of(problems_.begin(), problems_.end(), [](const std::string& problem) {
                          return problem.size() <= longest_direct_name;
                        });
    const bool keyed = !direct || !label(room, false);
    if (keyed) label(room, true);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const RooflinePoint& point = points_[i];
      out_.marker(x_(point.intensity), y_(point.gflops), series_of_[i],
                  fmt::format("{}, {}: {} GFLOP/s at {} FLOP/byte", point.name, point.series,
                              number_text(point.gflops), number_text(point.intensity)));
    }
    return out_.document(page_width, draw_key(end, keyed), chart_.title);
  }

 private:
  using Place = Point;  // in pixels

  void add(const RooflinePoint& point) {
    const auto series = std::find(series_.begin(), series_.end(), point.series);
    series_of_.push_back(static_cast<std::size_t>(series - series_.begin()));
    if (series == series_.end()) series_.push_back(point.series);
    const auto problem = static_cast<std::size_t>(std::find(problems_.begin(), problems_.end(), point.name) -
                                                  problems_.begin());
    if (problem == problems_.size()) problems_.push_back(point.name);
    auto column = std::find_if(columns_.begin(), columns_.end(), [&](const Column& known) {
      return known.problem == problem && points_[known.points[0]].intensity == point.intensity;
    });
    if (column == columns_.end()) column = columns_.insert(column, {problem, {}});
    column->points.push_back(points_.size());
    points_.push_back(point);
  }

  double highest_peak() const {
    double result = 0;
    for (const Roof& roof : peaks_) result = std::max(result, roof.value);
    return result;
  }

  void make_scales() {
    double x_low = std::numeric_limits<double>::infinity(), x_high = 0, y_low = x_low,
           y_high = highest_peak();
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
    if (y_high == 0)
      for (const Roof& bandwidth : bandwidths_) y_high = std::max(y_high, bandwidth.value * x_high);
    if (!usable(y_low)) y_low = y_high / 100;
    x_ = Scale::logarithmic(x_low, x_high);
    y_ = Scale::logarithmic(y_low, y_high * 1.6);
  }

  std::vector<Place> places() const {
    std::vector<Place> result;
    for (const RooflinePoint& point : points_) result.push_back({x_(point.intensity), y_(point.gflops)});
    return result;
  }
  static Rect around(const Place& place) {
    return {place.x - marker_reach, place.y - marker_reach, place.x + marker_reach, place.y + marker_reach};
  }

  void draw_roofs(const Frame& frame, Room& room) {
    const double peak = highest_peak();
    double fastest = 0;
    for (const Roof& roof : bandwidths_) fastest = std::max(fastest, roof.value);
    struct Slant {
      Roof roof;
      double x1, y1, x2, y2;
    };
    std::vector<Slant> slants;
    for (const Roof& roof : bandwidths_) {
      const double first = std::max(x_.low(), y_.low() / roof.value);
      const double last =
          std::min({x_.high(), y_.high() / roof.value, peak > 0 ? peak / roof.value : x_.high()});
      if (!(first < last)) continue;
      slants.push_back({roof, x_(first), y_(roof.value * first), x_(last), y_(roof.value * last)});
    }
    struct Level {
      Roof roof;
      double x, y;
    };
    std::vector<Level> levels;
    for (const Roof& roof : peaks_) {
      const double first = fastest > 0 ? std::max(x_.low(), roof.value / fastest) : x_.low();
      if (first < x_.high()) levels.push_back({roof, x_(first), y_(roof.value)});
    }
    for (const Slant& s : slants) {
      out_.line(s.x1, s.y1, s.x2, s.y2, "roof");
      room.take_line(s.x1, s.y1, s.x2, s.y2);
    }
    for (const Level& level : levels) {
      out_.line(level.x, level.y, frame.area.right, level.y, "roof");
      room.take_line(level.x, level.y, frame.area.right, level.y);
    }
    for (const Level& level : levels) label_level(level.roof, level.x, level.y, frame.area.right, room);
    for (const Slant& s : slants) label_slant(s.roof, s.x1, s.y1, s.x2, s.y2, room);
  }

  /// Above or below the roof, from its right end to the left until it is free.
  void label_level(const Roof& roof, double left, double y, double right, Room& room) {
    const std::string text = roof.name + ": " + number_text(roof.value) + " GFLOP/s";
    const double width = text_width(text, small_size);
    for (double end = right - 4; end - width > left; end -= 20)
      for (const double base : {y - 5, y + small_size + 3}) {
        const Rect place{end - width, base - small_size, end, base + 1.5};
        if (!room.is_free(place)) continue;
        room.take(place);
        out_.text(end, base, text, {.anchor = Anchor::end, .size = small_size, .style = "quiet"});
        return;
      }
    unlabelled_.push_back("roof " + text);
  }

  /// Along the roof, above or below it, from its lower end upwards until it is free.
  void label_slant(const Roof& roof, double x1, double y1, double x2, double y2, Room& room) {
    const std::string text = roof.name + ": " + number_text(roof.value) + " GB/s";
    const double width = text_width(text, small_size);
    const double length = std::hypot(x2 - x1, y2 - y1);
    const double along_x = (x2 - x1) / length, along_y = (y2 - y1) / length;
    for (const double distance : {7.0, -7.0 - small_size * 0.72})  // of the base line, to the upper left
      for (double start = 10; start + width < length; start += 14) {
        const double x = x1 + along_x * start + along_y * distance;
        const double y = y1 + along_y * start - along_x * distance;
        std::vector<Rect> pieces;
        for (double at = 0; at <= width; at += 4) {
          const double middle_x = x + along_x * at + along_y * small_size * 0.36;
          const double middle_y = y + along_y * at - along_x * small_size * 0.36;
          pieces.push_back({middle_x - 4.5, middle_y - 4.5, middle_x + 4.5, middle_y + 4.5});
        }
        if (!std::all_of(pieces.begin(), pieces.end(),
                         [&](const Rect& piece) { return room.is_free(piece); }))
          continue;
        for (const Rect& piece : pieces) room.take(piece);
        out_.text(x, y, text,
                  {.size = small_size,
                   .style = "quiet",
                   .angle = std::atan2(along_y, along_x) * 180 / std::acos(-1.0)});
        return;
      }
    unlabelled_.push_back("roof " + text);
  }

  /// A name (or its number in the key) beside the highest point of each column. False, and nothing drawn,
  /// when a name finds no room; a number that finds none is left out, for the key has them all.
  bool label(Room room, bool numbers) {
    struct Label {
      Place at;
      Rect place;
      std::string text;
    };
    std::vector<Label> labels;
    for (const Column& column : columns_) {
      Place at{0, 1e9};
      for (const std::size_t i : column.points)
        if (const Place here{x_(points_[i].intensity), y_(points_[i].gflops)}; here.y < at.y) at = here;
      const std::string text = numbers ? std::to_string(column.problem + 1) : problems_[column.problem];
      const std::optional<Rect> place = find(room, at, text);
      if (!place && !numbers) return false;
      if (!place) continue;
      room.take(*place);
      labels.push_back({at, *place, text});
    }
    for (const Label& label : labels) {
      const double x = std::clamp(label.at.x, label.place.left, label.place.right);
      const double y = std::clamp(label.at.y, label.place.top, label.place.bottom);
      if (std::hypot(x - label.at.x, y - label.at.y) > 16) out_.line(label.at.x, label.at.y, x, y, "leader");
      out_.text(label.place.left + 1, label.place.bottom - 3, label.text, {.size = small_size});
    }
    return true;
  }

  /// The nearest free place around a point, directions above first.
  static std::optional<Rect> find(const Room& room, const Place& at, const std::string& text) {
    const double width = text_width(text, small_size) + 2, height = small_size + 3;
    for (double distance = 9; distance < 90; distance += 7)
      for (const double degrees : {90., 45., 0., 135., 315., 180., 225., 270., 67., 22., 112., 157.}) {
        const double radians = degrees * std::acos(-1.0) / 180;
        const double x = at.x + std::cos(radians) * (distance + width / 2);
        const double y = at.y - std::sin(radians) * (distance + height / 2);
        const Rect place{x - width / 2, y - height / 2, x + width / 2, y + height / 2};
        if (room.is_free(place)) return place;
      }
    return {};
  }

  /// What the numbers mean, where labels are numbers, and roofs without a label, in columns as wide as the
  /// longest name; returns where it ends.
  double draw_key(double top, bool numbers) {
    std::vector<std::string> entries;
    for (std::size_t p = 0; numbers && p < problems_.size(); ++p)
      entries.push_back(fmt::format("{} · {}", p + 1, problems_[p]));
    entries.insert(entries.end(), unlabelled_.begin(), unlabelled_.end());
    if (entries.empty()) return top;
    double widest = 1;
    for (std::string& entry : entries) {
      entry = shortened(entry, small_size, page_width - 2 * margin);
      widest = std::max(widest, text_width(entry, small_size) + 24);
    }
    const auto columns = static_cast<std::size_t>(std::max(1.0, (page_width - 2 * margin + 24) / widest));
    const std::size_t rows = (entries.size() + columns - 1) / columns;
    for (std::size_t i = 0; i < entries.size(); ++i)
      out_.text(margin + static_cast<double>(i / rows) * widest,
                top + 10 + static_cast<double>(i % rows) * key_row + small_size, entries[i],
                {.size = small_size});
    return top + 22 + static_cast<double>(rows) * key_row;
  }

  const Roofline& chart_;
  Svg out_;
  std::vector<Roof> peaks_, bandwidths_;
  std::vector<RooflinePoint> points_;
  std::vector<std::string> series_;
  std::vector<std::size_t> series_of_;  ///< of each point
  std::vector<std::string> problems_;
  std::vector<Column> columns_;
  std::vector<std::string> unlabelled_;  ///< roofs whose names found no room: they go into the key
  Scale x_, y_;
};

}  // namespace

std::string svg(const Roofline& chart) { return Picture(chart).draw(); }

}  // namespace pleat::bench::plot
