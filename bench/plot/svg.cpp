#include "pleat/bench/plot/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "pleat/core/files/atomic_file.h"

namespace pleat::bench::plot {
namespace {

/// Okabe and Ito's colours, some darker on light pages (yellow, sky blue) and brighter on dark ones.
struct Colour {
  const char* light;
  const char* dark;
};
constexpr Colour colours[] = {{"#0072b2", "#3aa0e0"}, {"#e08a00", "#f0a92e"}, {"#009e73", "#1fc498"},
                              {"#b4568f", "#dc8fbb"}, {"#3d9bd1", "#8accf2"}, {"#c74e00", "#f07a33"},
                              {"#8a8200", "#e8dc4a"}, {"#5c5f66", "#b4bac4"}};

/// What is shown for bytes that are no character.
constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

/// The bytes of the UTF-8 character at `at`, or 0 when they are not one that XML allows.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x20) return first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  if (first < 0x80) return first == 0x7F ? 0 : 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || at + length > text.size()) return 0;
  unsigned code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr unsigned shortest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < shortest[length] || surrogate || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF ? 0
                                                                                                     : length;
}

/// Shares of the font size.
double character_width(std::string_view character) {
  if (character.size() > 1) return character.size() > 2 && character[0] != '\xE2' ? 1.05 : 0.84;
  const char c = character[0];
  if (std::string_view("ijl.,:;'|!I ").find(c) != std::string_view::npos) return 0.34;
  if (std::string_view("frt-()[]/\\\"").find(c) != std::string_view::npos) return 0.42;
  if (std::string_view("mMW@%wQO").find(c) != std::string_view::npos) return 0.98;
  if (std::string_view("+<>=#~^&").find(c) != std::string_view::npos) return 0.84;
  return c >= 'A' && c <= 'Z' ? 0.72 : 0.64;
}

std::string class_of(const char* kind, std::size_t series) {
  return fmt::format("{} s{}", kind, series % std::size(colours));
}

std::string style_sheet() {
  std::string light, dark;
  for (std::size_t i = 0; i < std::size(colours); ++i) {
    light += fmt::format(".b.s{0},.m.s{0}{{fill:{1}}}.l.s{0}{{stroke:{1}}}", i, colours[i].light);
    dark += fmt::format(".b.s{0},.m.s{0}{{fill:{1}}}.l.s{0}{{stroke:{1}}}", i, colours[i].dark);
  }
  return "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}"
         ".ink{fill:#24292f}.quiet{fill:#57606a}.strong{fill:#24292f;font-weight:600}"
         ".grid{stroke:#8c959f;stroke-opacity:.3}.axis{stroke:#57606a}.whisker{stroke:#24292f;stroke-width:1."
         "4}"
         ".roof{stroke:#57606a;stroke-width:1.8}.leader{stroke:#8c959f}.l{fill:none;stroke-width:2.2;"
         "stroke-linejoin:round;stroke-linecap:round}.m{stroke:#fff;stroke-opacity:.85;stroke-width:1}" +
         light +
         "@media(prefers-color-scheme:dark){.ink,.strong{fill:#e6edf3}.quiet{fill:#9da7b3}.axis,.roof{stroke:"
         "#9da7b3}.whisker{stroke:#e6edf3}.m{stroke:#0d1117}" +
         dark + "}";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0)
      result += replacement;
    else if (text[at] == '&')
      result += "&amp;";
    else if (text[at] == '<')
      result += "&lt;";
    else if (text[at] == '>')
      result += "&gt;";
    else if (text[at] == '"')
      result += "&quot;";
    else
      result += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    width += character_width(length == 0 ? replacement : text.substr(at, length));
    at += std::max<std::size_t>(length, 1);
  }
  return width * size;
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  const std::string ellipsis = "…";
  double used = text_width(ellipsis, size);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = std::max<std::size_t>(character_length(text, at), 1);
    used += text_width(text.substr(at, length), size);
    if (used > width) break;
    at += length;
  }
  while (at > 0 && text[at - 1] == ' ') --at;
  return std::string(text.substr(0, at)) + ellipsis;
}

void Svg::line(double x1, double y1, double x2, double y2, const char* style) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", style,
                       coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2));
}

void Svg::polyline(std::span<const Point> points, std::size_t series) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline class=\"{}\"{} points=\"", class_of("l", series),
                       series < std::size(colours) ? "" : " stroke-dasharray=\"7 5\"");
  for (const Point& point : points) body_ += coordinate(point.x) + "," + coordinate(point.y) + " ";
  body_.back() = '"';
  body_ += "/>\n";
}

void Svg::bar(const Rect& place, std::size_t series, const std::string& tooltip) {
  body_ += fmt::format(
      "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
      "rx=\"1.5\"{}><title>{}</title></rect>\n",
      class_of("b", series), coordinate(place.left), coordinate(place.top),
      coordinate(place.right - place.left), coordinate(place.bottom - place.top),
      series < std::size(colours) ? "" : " fill-opacity=\".55\"", escaped(tooltip));
}

void Svg::marker(double x, double y, std::size_t series, const std::string& tooltip) {
  constexpr int shapes = 6;
  constexpr double r = 5;
  const auto polygon = [&](std::initializer_list<Point> corners) {
    std::string points;
    for (const Point& corner : corners)
      points += coordinate(x + corner.x * r) + "," + coordinate(y + corner.y * r) + " ";
    points.pop_back();
    return "polygon points=\"" + points + "\"";
  };
  std::string shape;
  switch ((series + series / std::size(colours)) % shapes) {
    case 0:
      shape = fmt::format("circle cx=\"{}\" cy=\"{}\" r=\"{}\"", coordinate(x), coordinate(y), r);
      break;
    case 1:
      shape = polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
      break;
    case 2:
      shape = polygon({{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}});
      break;
    case 3:
      shape = polygon({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
      break;
    case 4:
      shape = polygon({{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}});
      break;
    default:
      shape = polygon({{-0.4, -1.2},
                       {0.4, -1.2},
                       {0.4, -0.4},
                       {1.2, -0.4},
                       {1.2, 0.4},
                       {0.4, 0.4},
                       {0.4, 1.2},
                       {-0.4, 1.2},
                       {-0.4, 0.4},
                       {-1.2, 0.4},
                       {-1.2, -0.4},
                       {-0.4, -0.4}});
  }
  body_ += fmt::format("<{} class=\"{}\"><title>{}</title></{}>\n", shape, class_of("m", series),
                       escaped(tooltip), shape.substr(0, shape.find(' ')));
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  static constexpr const char* anchors[] = {"start", "middle", "end"};
  const std::string turn = style.angle == 0
                               ? ""
                               : fmt::format(" transform=\"rotate({} {} {})\"", coordinate(style.angle),
                                             coordinate(x), coordinate(y));
  body_ +=
      fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
                  style.style, coordinate(x), coordinate(y), coordinate(style.size),
                  anchors[static_cast<int>(style.anchor)], turn, escaped(text));
}

double Svg::heading(const std::string& title, const std::string& subtitle, double width) {
  double y = 12;
  if (!title.empty()) {
    y += title_size;
    text(16, y, shortened(title, title_size * 1.06, width - 32), {.size = title_size, .style = "strong"});
    y += 3;
  }
  if (!subtitle.empty()) {
    y += text_size + 4;
    text(16, y, shortened(subtitle, text_size, width - 32), {.style = "quiet"});
  }
  return y + 8;
}

double Svg::legend(const std::vector<std::string>& names, double left, double top, double right,
                   bool markers) {
  if (names.empty()) return top;
  constexpr double row = 21, key = 14, gap = 20;
  double x = left, y = top + row / 2;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = shortened(names[i], text_size, right - left - key - 8);
    const double width = key + 7 + text_width(name, text_size);
    if (x > left && x + width > right) x = left, y += row;
    if (markers)
      marker(x + key / 2, y, i, names[i]);
    else
      bar({x, y - 6, x + key, y + 6}, i, names[i]);
    text(x + key + 7, y + text_size * 0.36, name);
    x += width + gap;
  }
  return y + row / 2 + 4;
}

std::string Svg::document(double width, double height, const std::string& title) const {
  const std::string w = coordinate(width), h = coordinate(height);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n{4}</svg>\n",
      w, h, escaped(title), style_sheet(), body_);
}

void write(const std::filesystem::path& file, const std::string& svg) { write_file("plot", file, svg); }

}  // namespace pleat::bench::plot
