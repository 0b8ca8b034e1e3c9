#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

/// Pictures of measurements, as SVG: bars, lines and rooflines. They are readable on light and dark pages
/// (their colours follow prefers-color-scheme, their background is transparent), their colours can be told
/// apart by the colour-blind (Okabe and Ito, "Color Universal Design"), and no label covers another or leaves
/// the picture. Text may be any UTF-8. A value that is not finite is left out of lines and rooflines, and is
/// said to be missing by bars.

namespace pleat::bench::plot {

/// Stands for a value that there is not.
inline constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// One bar: its length, and where the middle half of the measurements lies, drawn as a whisker.
struct Bar {
  double value = missing;
  double low = missing;   ///< lower quartile; missing: no whisker
  double high = missing;  ///< upper quartile
  std::string note = {};  ///< after the value; where there is none, instead of it: why
};

/// Bars of one colour, one for each group: an implementation over several problems.
struct BarSeries {
  std::string name = {};
  std::vector<Bar> bars = {};  ///< by group; those at the end may be left out
};

/// Horizontal bars, a group below the other.
struct BarChart {
  std::string title = {};
  std::string subtitle = {};
  std::string axis = {};  ///< what the length of a bar is, with its unit: "time [ms]"
  std::vector<std::string> groups = {};
  std::vector<BarSeries> series = {};
};

struct Point {
  double x = missing;
  double y = missing;
};

struct LineSeries {
  std::string name = {};
  std::vector<Point> points = {};
};

/// Lines over a common axis, for instance time against batch size. Logarithmic axes show positive values
/// only.
struct LineChart {
  std::string title = {};
  std::string subtitle = {};
  std::string x_axis = {};
  std::string y_axis = {};
  std::vector<LineSeries> series = {};
  bool log_x = true;
  bool log_y = true;
};

/// A roof: as many operations as the machine does, or as many bytes as a memory moves.
struct Roof {
  std::string name = {};
  double value = missing;
};

struct RooflinePoint {
  std::string name = {};       ///< of the problem; points of equal names get one label
  std::string series = {};     ///< of the implementation: colour and shape
  double intensity = missing;  ///< FLOP/byte
  double gflops = missing;     ///< GFLOP/s
};

/// Operations per second against operations per byte, both logarithmic (Williams, Waterman, Patterson,
/// "Roofline: an insightful visual performance model", 2009).
struct Roofline {
  std::string title = {};
  std::string subtitle = {};
  std::vector<Roof> peaks = {};       ///< GFLOP/s
  std::vector<Roof> bandwidths = {};  ///< GB/s
  std::vector<RooflinePoint> points = {};
};

/// The picture: a whole SVG document.
std::string svg(const BarChart& chart);
std::string svg(const LineChart& chart);
std::string svg(const Roofline& chart);

/// Writes a picture. Throws FileError when it cannot be written.
void write(const std::filesystem::path& file, const std::string& svg);

}  // namespace pleat::bench::plot
