#pragma once

#include <string>
#include <vector>

#include "pleat/bench/plot/scale.h"
#include "pleat/bench/plot/svg.h"

namespace pleat::bench::plot {

/// Where a plot with two axes stands in its picture.
struct Frame {
  double page_width;
  Rect area;
};

/// Leaves as much room on the left as the ticks and the name of the y axis need, and places both scales.
Frame make_frame(Scale& x, Scale& y, double page_width, double top, double height);

/// Grid, ticks and names of both axes. `x_ticks`: the values that get a tick; where two labels meet, the
/// second is left out. Returns where the picture's lower part begins.
double draw_axes(Svg& out, const Frame& frame, const Scale& x, const std::vector<double>& x_ticks,
                 const Scale& y, const std::string& x_name, const std::string& y_name);

}  // namespace pleat::bench::plot
