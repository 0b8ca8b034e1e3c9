#include "learning_curves.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include <pleat/core/files/atomic_file.h>

namespace {

constexpr double panel_width = 420;
constexpr double panel_height = 260;
constexpr double left_margin = 58;
constexpr double top_margin = 64;
constexpr double gap = 76;
const char* const colours[] = {"#2f81f7", "#e5732a", "#3fa45b", "#b061d6"};

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

/// A step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks.
double tick_step(double range, int wanted) {
  const double rough = range / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

/// One plot of curves over epochs 1 ... n.
class Panel {
 public:
  Panel(std::string heading, const std::vector<Curve>& curves, double left, bool percent)
      : heading_(std::move(heading)), curves_(curves), left_(left), percent_(percent) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Curve& curve : curves) {
      epochs_ = std::max(epochs_, curve.values.size());
      for (const double value : curve.values)
        if (std::isfinite(value)) {
          low = std::min(low, value);
          high = std::max(high, value);
        }
    }
    if (!(low <= high)) low = 0, high = 1;
    step_ = tick_step(std::max(high - low, 1e-3), 5);
    low_ = std::floor(low / step_) * step_;
    high_ = std::ceil(high / step_) * step_;
    if (high_ == low_) high_ = low_ + step_;
  }

  void draw(std::ostream& out) const {
    out << "<text class=\"heading\" x=\"" << left_ << "\" y=\"" << top_margin - 14 << "\">"
        << escaped(heading_) << "</text>\n";
    for (int i = 0; low_ + i * step_ <= high_ + step_ / 2; ++i) {
      const double value = low_ + i * step_;
      out << "<line class=\"grid\" x1=\"" << left_ << "\" x2=\"" << left_ + panel_width << "\" y1=\""
          << y(value) << "\" y2=\"" << y(value) << "\"/>\n"
          << "<text class=\"tick\" text-anchor=\"end\" x=\"" << left_ - 8 << "\" y=\"" << y(value) + 4
          << "\">" << label(value) << "</text>\n";
    }
    const int every =
        std::max(1, static_cast<int>(tick_step(static_cast<double>(std::max<std::size_t>(epochs_, 2)), 6)));
    for (int epoch = every; epoch <= static_cast<int>(epochs_); epoch += every)
      out << "<text class=\"tick\" text-anchor=\"middle\" x=\"" << x(epoch) << "\" y=\""
          << top_margin + panel_height + 18 << "\">" << epoch << "</text>\n";
    out << "<text class=\"tick\" text-anchor=\"middle\" x=\"" << left_ + panel_width / 2 << "\" y=\""
        << top_margin + panel_height + 38 << "\">epoch</text>\n";
    for (std::size_t c = 0; c < curves_.size(); ++c) draw_curve(out, c);
  }

 private:
  double x(double epoch) const {
    return left_ +
           (epochs_ <= 1 ? panel_width / 2 : (epoch - 1) / static_cast<double>(epochs_ - 1) * panel_width);
  }
  double y(double value) const { return top_margin + (high_ - value) / (high_ - low_) * panel_height; }
  std::string label(double value) const {
    const int digits =
        std::max(0, static_cast<int>(std::ceil(-std::log10(step_ * (percent_ ? 100 : 1)) - 1e-9)));
    return percent_ ? number(100 * value, digits) + " %" : number(value, digits);
  }

  void draw_curve(std::ostream& out, std::size_t c) const {
    const Curve& curve = curves_[c];
    const char* colour = colours[c % std::size(colours)];
    out << "<polyline fill=\"none\" stroke=\"" << colour
        << "\" stroke-width=\"2.2\" stroke-linejoin=\"round\" points=\"";
    for (std::size_t i = 0; i < curve.values.size(); ++i)
      if (std::isfinite(curve.values[i]))
        out << x(static_cast<double>(i + 1)) << ',' << y(curve.values[i]) << ' ';
    out << "\"/>\n";
    for (std::size_t i = 0; i < curve.values.size() && epochs_ <= 40; ++i)
      if (std::isfinite(curve.values[i]))
        out << "<circle r=\"2.8\" fill=\"" << colour << "\" cx=\"" << x(static_cast<double>(i + 1))
            << "\" cy=\"" << y(curve.values[i]) << "\"/>\n";
    const double at = left_ + panel_width - 150.0 * static_cast<double>(curves_.size() - c) + 40;
    out << "<rect fill=\"" << colour << "\" x=\"" << at << "\" y=\"" << top_margin - 23
        << "\" width=\"14\" height=\"4\" rx=\"2\"/>\n"
        << "<text class=\"tick\" x=\"" << at + 20 << "\" y=\"" << top_margin - 16 << "\">"
        << escaped(curve.name) << (curve.values.empty() ? "" : " " + last(curve)) << "</text>\n";
  }

  std::string last(const Curve& curve) const {
    return percent_ ? number(100 * curve.values.back(), 1) + " %" : number(curve.values.back(), 3);
  }

  std::string heading_;
  const std::vector<Curve>& curves_;
  double left_;
  bool percent_;
  std::size_t epochs_ = 0;
  double low_ = 0, high_ = 1, step_ = 1;
};

}  // namespace

void write_learning_curves(const std::filesystem::path& file, const std::string& title,
                           const std::vector<Curve>& losses, const std::vector<Curve>& accuracies) {
  const double width = 2 * panel_width + left_margin + gap + 30;
  const double height = top_margin + panel_height + 52;
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" viewBox=\"0 0 " << width << ' ' << height << "\">\n"
      << "<style>text{font-family:system-ui,sans-serif;fill:#57606a}.title{font-size:16px;font-weight:600}"
         ".heading{font-size:14px;font-weight:600}.tick{font-size:12px}.grid{stroke:#8b949e;stroke-opacity:."
         "35}"
         ".page{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.page{fill:#0d1117}}</style>\n"
      << "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
      << "<text class=\"title\" x=\"" << left_margin << "\" y=\"26\">" << escaped(title) << "</text>\n";
  Panel("Loss", losses, left_margin, false).draw(out);
  Panel("Accuracy", accuracies, left_margin + panel_width + gap, true).draw(out);
  out << "</svg>\n";
  pleat::write_file("learning curves", file, out.str());
}
