#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/bench/plot/plot.h"

/// What the kinds of pictures share: elements of SVG, the style, the width of text, the legend.

namespace pleat::bench::plot {

/// Font sizes in pixels.
inline constexpr double title_size = 17;
inline constexpr double text_size = 13;
inline constexpr double small_size = 11.5;

/// For text in XML: markup is replaced by entities; bytes that XML does not allow (control characters, what
/// is not UTF-8) by U+FFFD.
std::string escaped(std::string_view text);

/// An upper estimate of the width of a text in pixels: an SVG cannot measure its text, and the font is the
/// viewer's. Based on DejaVu Sans, one of the widest that are in use.
double text_width(std::string_view text, double size);
/// The text, or as much of its beginning as fits, with an ellipsis.
std::string shortened(std::string_view text, double size, double width);

enum class Anchor : unsigned char { start, middle, end };

struct TextStyle {
  Anchor anchor = Anchor::start;
  double size = text_size;
  const char* style = "ink";  ///< a class of the style sheet: ink, quiet or strong
  double angle = 0;           ///< degrees, clockwise around (x, y)
};

struct Rect {
  double left, top, right, bottom;
  bool overlaps(const Rect& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool inside(const Rect& outer) const {
    return left >= outer.left && right <= outer.right && top >= outer.top && bottom <= outer.bottom;
  }
};

/// Elements of a picture in the order in which they are painted. Coordinates are pixels from the upper left
/// corner.
class Svg {
 public:
  /// `style`: a class of the style sheet; "grid", "axis", "whisker", "roof", "leader".
  void line(double x1, double y1, double x2, double y2, const char* style);
  void polyline(std::span<const Point> points, std::size_t series);
  /// `tooltip`: what viewers show when one points at it.
  void bar(const Rect& place, std::size_t series, const std::string& tooltip);
  /// Each series has a shape of its own beside its colour.
  void marker(double x, double y, std::size_t series, const std::string& tooltip);
  void text(double x, double y, std::string_view text, const TextStyle& style = {});
  /// Title and subtitle; returns where they end.
  double heading(const std::string& title, const std::string& subtitle, double width);
  /// Names of the series in rows from `top` on; returns where they end.
  double legend(const std::vector<std::string>& names, double left, double top, double right, bool markers);

  std::string document(double width, double height, const std::string& title) const;

 private:
  std::string body_;
};

}  // namespace pleat::bench::plot
