#include "pleat/bench/plot/frame.h"

#include <algorithm>

namespace pleat::bench::plot {

Frame make_frame(Scale& x, Scale& y, double page_width, double top, double height) {
  double labels = 0;
  for (const double tick : y.ticks()) labels = std::max(labels, text_width(number_text(tick), small_size));
  const Frame frame{page_width, {16 + text_size + 10 + labels + 7, top, page_width - 28, top + height}};
  x.place(frame.area.left, frame.area.right);
  y.place(frame.area.bottom, frame.area.top);
  return frame;
}

double draw_axes(Svg& out, const Frame& frame, const Scale& x, const std::vector<double>& x_ticks,
                 const Scale& y, const std::string& x_name, const std::string& y_name) {
  const Rect& area = frame.area;
  double taken = 0;
  for (const double tick : x_ticks) {
    const double at = x(tick);
    const std::string label = number_text(tick);
    const double half = text_width(label, small_size) / 2;
    if (at - half < taken || at + half > frame.page_width) continue;
    out.line(at, area.top, at, area.bottom, "grid");
    out.text(at, area.bottom + 17, label, {.anchor = Anchor::middle, .size = small_size, .style = "quiet"});
    taken = at + half + 7;
  }
  double free = area.bottom + 1e9;
  for (const double tick : y.ticks()) {
    const double at = y(tick);
    if (at > free) continue;
    out.line(area.left, at, area.right, at, "grid");
    out.text(area.left - 7, at + small_size * 0.36, number_text(tick),
             {.anchor = Anchor::end, .size = small_size, .style = "quiet"});
    free = at - small_size - 3;
  }
  out.line(area.left, area.bottom, area.right, area.bottom, "axis");
  out.line(area.left, area.top, area.left, area.bottom, "axis");
  out.text((area.left + area.right) / 2, area.bottom + 40,
           shortened(x_name, text_size, area.right - area.left), {.anchor = Anchor::middle});
  out.text(16 + text_size * 0.8, (area.top + area.bottom) / 2,
           shortened(y_name, text_size, area.bottom - area.top), {.anchor = Anchor::middle, .angle = -90});
  return area.bottom + 52;
}

}  // namespace pleat::bench::plot
