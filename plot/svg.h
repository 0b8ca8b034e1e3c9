#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// What pictures are made of (chart.h): elements of SVG in one style, the width of text, axes. Lengths are
/// pixels, the origin is the upper left corner.

namespace pleat::plot {

/// Stands for a value that there is not.
inline constexpr double missing = std::numeric_limits<double>::quiet_NaN();

struct Point {
  double x = missing, y = missing;
};

namespace svg {

/// Font sizes.
inline constexpr double title_size = 17, text_size = 13, small_size = 11.5;

/// For text in XML: markup becomes entities; bytes that XML does not allow (control characters, what is not
/// UTF-8) become U+FFFD.
std::string escaped(std::string_view text);

/// An upper estimate of a text's width: an SVG cannot measure text, and the font is the viewer's. Based on
/// DejaVu Sans, one of the widest in use.
double text_width(std::string_view text, double size);
/// The text, or as much of its beginning as fits the width, with an ellipsis.
std::string shortened(std::string_view text, double size, double width);

/// Three significant digits, with a comma for thousands; powers of ten outside of 0.0001 to a million:
/// "0.0123", "12.3", "1,230", "1.23×10⁷".
std::string number_text(double value);

struct Rect {
  double left, top, right, bottom;
  bool overlaps(const Rect& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool inside(const Rect& outer) const {
    return left >= outer.left && right <= outer.right && top >= outer.top && bottom <= outer.bottom;
  }
};

/// A map from values to pixels, with ticks at round values. Values beyond 1e-290 ... 1e290 are held there.
class Scale {
 public:
  /// Round numbers around [low, high], which may be in any order, equal or negative.
  static Scale linear(double low, double high);
  /// Around positive numbers, at least a factor of two.
  static Scale logarithmic(double low, double high);

  /// The scale ends a little beyond `low` and `high` instead of at ticks; ticks beyond are dropped.
  void crop(double low, double high);
  /// The pixels of the lowest and the highest value.
  void place(double start, double end) { start_ = start, end_ = end; }
  /// The pixel of a value; values outside of the scale are held at its ends.
  double operator()(double value) const;

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  Scale(bool log, std::vector<double> ticks);

  bool log_;
  double low_, high_;
  double start_ = 0, end_ = 1;
  std::vector<double> ticks_;
};

struct TextStyle {
  const char* anchor = "start";  ///< start, middle or end: which point of the text is given
  double size = text_size;
  const char* style = "ink";  ///< ink, quiet or strong
  double angle = 0;           ///< degrees, clockwise around that point
};

/// Elements in the order in which they are painted. Colours follow prefers-color-scheme and can be told apart
/// by the colour-blind (Okabe and Ito, "Color Universal Design"); a series has a shape of its own, too.
class Canvas {
 public:
  /// `style`: grid, axis, whisker, roof or leader.
  void line(Point from, Point to, const char* style);
  void polyline(const std::vector<Point>& points, std::size_t series);
  /// `tooltip`: what viewers show when one points at it.
  void bar(const Rect& place, std::size_t series, const std::string& tooltip);
  void marker(Point at, std::size_t series, const std::string& tooltip);
  void text(Point at, std::string_view text, const TextStyle& style = {});
  /// Title and subtitle in the upper left corner; returns where they end.
  double heading(const std::string& title, const std::string& subtitle, double width);
  /// Names of the series in rows inside of left, right from `top` on; returns where they end.
  double legend(const std::vector<std::string>& names, double left, double top, double right, bool markers);
  /// The labels of an axis from left to right, as far as they have room and end before `right`; `with_each`
  /// gets the pixel of each.
  void tick_labels(const Scale& x, const std::vector<double>& ticks, double baseline, double right,
                   const std::function<void(double at)>& with_each = nullptr);
  /// Grid, ticks and names of both axes around an area; where two labels would meet, the second is left out.
  /// The scales must have been placed on the area. `percent`: values of y are shares. Returns where it ends.
  double axes(const Rect& area, const Scale& x, const std::vector<double>& x_ticks, const std::string& x_name,
              const Scale& y, const std::string& y_name, bool percent = false);

  /// The whole SVG document.
  std::string document(double width, double height, const std::string& title) const;

 private:
  std::string body_;
};

/// Room that the labels and the name of a y axis need on its left.
double y_axis_width(const Scale& y, bool percent = false);

}  // namespace svg
}  // namespace pleat::plot
