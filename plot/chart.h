#pragma once

#include <limits>
#include <string>
#include <vector>

/// Charts as SVG: bars and lines. They are readable on light and dark pages (their background is
/// transparent), and no label covers another or leaves the picture. Text may be any UTF-8. A value that is
/// not finite is left out of lines, and bars say that it is missing.

namespace pleat::plot {

/// Stands for a value that there is not.
inline constexpr double missing = std::numeric_limits<double>::quiet_NaN();

struct Bar {
  double value = missing;
  double low = missing, high = missing;  ///< ends of the whisker: quartiles; missing: none
  std::string note = {};                 ///< after the value; where there is none, instead of it: why
};

/// Horizontal bars in groups, one below the other; in each group a bar of each series, by its colour.
struct BarChart {
  struct Series {
    std::string name = {};
    std::vector<Bar> bars = {};  ///< by group; those at the end may be left out
  };
  std::string title = {};
  std::string subtitle = {};
  std::string axis = {};  ///< what the length of a bar is, with its unit: "time [ms]"
  std::vector<std::string> groups = {};
  std::vector<Series> series = {};

  /// Adds a bar to the group and series of these names, which are made where they are new.
  void add(const std::string& group, const std::string& series_name, const Bar& bar);
};

struct Point {
  double x = missing, y = missing;
};

struct LineChart {
  struct Line {
    std::string name = {};
    std::vector<Point> points = {};
  };
  std::string title = {};
  std::string subtitle = {};
  std::string x_axis = {};
  std::string y_axis = {};
  std::vector<Line> lines = {};
  bool log_x = false, log_y = false;  ///< logarithmic: only positive values are shown
  bool percent = false;               ///< values of y are shares, shown in percent

  /// Adds a point to the line of this name, which is made where it is new.
  void add(const std::string& line_name, const Point& point);
};

/// The whole SVG document.
std::string to_svg(const BarChart& chart);
std::string to_svg(const LineChart& chart);
/// Charts side by side under one title.
std::string to_svg(const std::string& title, const std::vector<LineChart>& charts);

}  // namespace pleat::plot
