#pragma once

#include <string>
#include <vector>

namespace pleat::plot {

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

/// The picture: a whole SVG document.
std::string to_svg(const Roofline& chart);

}  // namespace pleat::plot
