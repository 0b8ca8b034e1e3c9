#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pleat/plot/svg.h"

/// Charts as SVG: bars, lines and rooflines. They are readable on light and dark pages (their background is
/// transparent), and no label covers another or leaves the picture. Text may be any UTF-8. A value that is
/// not finite is left out of lines, and bars say that it is missing.

namespace pleat::plot {

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

/// What the machine does at best: operations or bytes per second.
struct Roof {
  std::string name = {};
  double value = 0;  ///< GFLOP/s or GB/s
};

struct RooflinePoint {
  std::string name = {};    ///< of the problem; points of equal names get one label
  std::string series = {};  ///< of the implementation: colour and shape
  double intensity = 0;     ///< FLOP/byte
  double gflops = 0;        ///< GFLOP/s
};

/// Operations per second against operations per byte, both logarithmic (Williams, Waterman, Patterson,
/// "Roofline: an insightful visual performance model", 2009). What is not positive and finite is left out.
struct Roofline {
  std::string title = {};
  std::string subtitle = {};
  std::vector<Roof> peaks = {};       ///< GFLOP/s
  std::vector<Roof> bandwidths = {};  ///< GB/s
  std::vector<RooflinePoint> points = {};
};

/// The whole SVG document.
std::string to_svg(const BarChart& chart);
std::string to_svg(const LineChart& chart);
std::string to_svg(const Roofline& chart);
/// Charts side by side under one title.
std::string to_svg(const std::string& title, const std::vector<LineChart>& charts);

/// One line of a plot: a value for each epoch.
struct Curve {
  std::string name;
  std::vector<double> values;
};

/// Draws loss and accuracy over the epochs, side by side. Accuracies are shares, shown in percent. Throws
/// pleat::FileError when the file cannot be written.
void write_learning_curves(const std::filesystem::path& file, const std::string& title,
                           const std::vector<Curve>& losses, const std::vector<Curve>& accuracies);

}  // namespace pleat::plot
