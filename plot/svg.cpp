// Elements of SVG, texts whose width is known, and axes with round ticks: what the charts of chart.cpp are
// made of. A number becomes text here alone, so that all pictures write it alike.
#include "pleat/plot/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "pleat/core/base/text_table.h"

namespace pleat::plot::svg {
namespace {

constexpr double smallest = 1e-290, largest = 1e290;

/// Okabe and Ito's colours, some darker on light pages (yellow, sky blue) and brighter on dark ones.
struct Colour {
  const char* light;
  const char* dark;
};
constexpr Colour colours[] = {{"#0072b2", "#3aa0e0"}, {"#e08a00", "#f0a92e"}, {"#009e73", "#1fc498"},
                              {"#b4568f", "#dc8fbb"}, {"#3d9bd1", "#8accf2"}, {"#c74e00", "#f07a33"},
                              {"#8a8200", "#e8dc4a"}, {"#5c5f66", "#b4bac4"}};

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// A coordinate as it is written: two decimals at most.
std::string px(double value) {
  const std::string text = without_trailing_zeros(fmt::format("{:.2f}", value));
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
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF, none = code == 0xFFFE || code == 0xFFFF;
  return code < shortest[length] || surrogate || none || code > 0x10FFFF ? 0 : length;
}

struct Character {
  std::string_view text;
  std::size_t at;  ///< its first byte
};

/// The characters of a text; U+FFFD for each byte that is part of none.
std::vector<Character> characters(std::string_view text) {
  std::vector<Character> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    all.push_back({length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length), at});
    at += std::max<std::size_t>(length, 1);
  }
  return all;
}

/// As a share of the font size.
double character_width(std::string_view character) {
  const auto among = [&](std::string_view set) { return set.find(character[0]) != std::string_view::npos; };
  if (character.size() > 1) return character.size() > 2 && character[0] != '\xE2' ? 1.05 : 0.84;
  if (among("ijl.,:;'|!I ")) return 0.34;
  if (among("frt-()[]/\\\"")) return 0.42;
  if (among("mMW@%wQO")) return 0.98;
  if (among("+<>=#~^&")) return 0.84;
  return character[0] >= 'A' && character[0] <= 'Z' ? 0.72 : 0.64;
}

std::string points_text(std::span<const Point> points) {
  std::string text;
  for (const Point& point : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", px(point.x), px(point.y));
  return text;
}

std::string style_sheet() {
  std::string light, dark;
  for (std::size_t i = 0; i < std::size(colours); ++i) {
    const auto rules = [i](const char* colour) {
      const std::string s = ".s" + std::to_string(i);
      return ".b" + s + ",.m" + s + "{fill:" + colour + "}.l" + s + "{stroke:" + colour + '}';
    };
    light += rules(colours[i].light);
    dark += rules(colours[i].dark);
  }
  return "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}"
         ".ink{fill:#24292f}.quiet{fill:#57606a}.strong{fill:#24292f;font-weight:600}"
         ".grid{stroke:#8c959f;stroke-opacity:.3}.axis{stroke:#57606a}"
         ".whisker{stroke:#24292f;stroke-width:1.4}.roof{stroke:#57606a;stroke-width:1.8}"
         ".leader{stroke:#8c959f}.m{stroke:#fff;stroke-opacity:.85;stroke-width:1}"
         ".l{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}" +
         light +
         "@media(prefers-color-scheme:dark){.ink,.strong{fill:#e6edf3}.quiet{fill:#9da7b3}"
         ".axis,.roof{stroke:#9da7b3}.whisker{stroke:#e6edf3}.m{stroke:#0d1117}" +
         dark + '}';
}

std::string superscript(int number) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) result += digits[c - '0'];
  return result;
}

/// A step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks.
double round_step(double range, int wanted) {
  const double rough = std::max(range / wanted, smallest);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::string tick_text(double tick, bool percent) {
  return percent ? number_text(100 * tick) + " %" : number_text(tick);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const auto& [character, at] : characters(text)) switch (character[0]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += character;
    }
  return result;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const auto& [character, at] : characters(text)) width += character_width(character);
  return width * size;
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  const std::string ellipsis = "…";
  double used = text_width(ellipsis, size);
  std::size_t end = 0;
  for (const auto& [character, at] : characters(text)) {
    end = at;
    if ((used += character_width(character) * size) > width) break;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  return std::string(text.substr(0, end)) + ellipsis;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  if (value == 0) return "0";
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (power >= 2 && power < 6) return (value < 0 ? "-" : "") + grouped(std::llrint(std::abs(value)));
  if (power >= -4 && power < 2) return without_trailing_zeros(fmt::format("{:.{}f}", value, 2 - power));
  const std::string text = fmt::format("{:.2e}", value);
  const std::size_t e = text.find('e');
  const std::string digits = without_trailing_zeros(text.substr(0, e));
  return (digits == "1"    ? ""
          : digits == "-1" ? "-"
                           : digits + "×") +
         "10" + superscript(std::stoi(text.substr(e + 1)));
}

Scale::Scale(bool log, std::vector<double> ticks)
    : log_(log), low_(ticks.front()), high_(ticks.back()), ticks_(std::move(ticks)) {}

Scale Scale::linear(double low, double high) {
  low = std::clamp(low, -largest, largest);
  high = std::clamp(high, -largest, largest);
  if (low > high) std::swap(low, high);
  if (high - low < 1e-9 * std::max(std::abs(low), std::abs(high)) || high - low < smallest) {
    const double margin = std::max(std::abs(low) / 2, low == 0 ? 0.5 : smallest);
    low -= margin, high += margin;
  }
  const double step = round_step(high - low, 6);
  std::vector<double> ticks;
  for (double tick = std::floor(low / step + 1e-9); tick <= std::ceil(high / step - 1e-9) + 0.5; ++tick)
    ticks.push_back(tick * step);
  return Scale(false, std::move(ticks));
}

Scale Scale::logarithmic(double low, double high) {
  low = std::clamp(low, smallest, largest);
  high = std::clamp(high, smallest, largest);
  if (low > high) std::swap(low, high);
  if (high < 2 * low) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    low = middle / 1.5, high = middle * 1.5;
  }
  const double decades = std::log10(high) - std::log10(low);
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  std::vector<double> factors = {1};
  if (decades <= 1.2)
    factors = {1, 1.5, 2, 3, 4, 5, 7};
  else if (decades <= 3)
    factors = {1, 2, 5};
  const int every = std::max(1, (last - first + 7) / 8);
  // The axis ends at the round values that just hold what it must show.
  std::vector<double> candidates;
  for (int power = first - every; power <= last + every; power += every)
    for (const double factor : factors) candidates.push_back(factor * std::pow(10, power));
  const auto above = std::upper_bound(candidates.begin(), candidates.end(), low * (1 + 1e-9));
  const auto end = std::lower_bound(candidates.begin(), candidates.end(), high * (1 - 1e-9));
  return Scale(true, {above - 1, end + 1});
}

void Scale::crop(double low, double high) {
  constexpr double margin = 0.04;
  if (log_) {
    const double beyond = std::pow(high / low, margin);
    low_ = std::max(low_, low / beyond), high_ = std::min(high_, high * beyond);
  } else {
    const double beyond = (high - low) * margin;
    low_ = std::max(low_, low - beyond), high_ = std::min(high_, high + beyond);
  }
  std::erase_if(ticks_, [&](double tick) { return tick < low_ || tick > high_; });
}

double Scale::operator()(double value) const {
  value = std::clamp(value, low_, high_);
  const double share = log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
                            : (value - low_) / (high_ - low_);
  return start_ + share * (end_ - start_);
}

void Canvas::line(Point from, Point to, const char* style) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", style, px(from.x),
                       px(from.y), px(to.x), px(to.y));
}

void Canvas::polyline(const std::vector<Point>& points, std::size_t series) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline class=\"l s{}\"{} points=\"{}\"/>\n", series % std::size(colours),
                       series < std::size(colours) ? "" : " stroke-dasharray=\"7 5\"", points_text(points));
}

void Canvas::bar(const Rect& place, std::size_t series, const std::string& tooltip) {
  body_ += fmt::format(
      "<rect class=\"b s{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
      "rx=\"1.5\"{}><title>{}</title></rect>\n",
      series % std::size(colours), px(place.left), px(place.top), px(place.right - place.left),
      px(place.bottom - place.top), series < std::size(colours) ? "" : " fill-opacity=\".55\"",
      escaped(tooltip));
}

void Canvas::marker(Point at, std::size_t series, const std::string& tooltip) {
  constexpr double r = 5;
  static constexpr Point square[] = {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}};
  static constexpr Point up[] = {{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}};
  static constexpr Point diamond[] = {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}};
  static constexpr Point down[] = {{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}};
  static constexpr std::span<const Point> shapes[] = {{}, square, up, diamond, down};  // none: a circle
  const auto shape = shapes[(series + series / std::size(colours)) % std::size(shapes)];
  std::vector<Point> corners(shape.begin(), shape.end());
  for (Point& corner : corners) corner = {at.x + corner.x * r, at.y + corner.y * r};
  const char* const name = corners.empty() ? "circle" : "polygon";
  const std::string place = corners.empty()
                                ? fmt::format("cx=\"{}\" cy=\"{}\" r=\"{}\"", px(at.x), px(at.y), px(r))
                                : "points=\"" + points_text(corners) + '"';
  body_ += fmt::format("<{0} class=\"m s{1}\" {2}><title>{3}</title></{0}>\n", name,
                       series % std::size(colours), place, escaped(tooltip));
}

void Canvas::text(Point at, std::string_view text, const TextStyle& style) {
  const std::string turn =
      style.angle == 0 ? ""
                       : fmt::format(" transform=\"rotate({} {} {})\"", px(style.angle), px(at.x), px(at.y));
  body_ +=
      fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
                  style.style, px(at.x), px(at.y), px(style.size), style.anchor, turn, escaped(text));
}

double Canvas::heading(const std::string& title, const std::string& subtitle, double width) {
  double y = 12;
  if (!title.empty()) {
    y += title_size;
    text({16, y}, shortened(title, title_size * 1.06, width - 32), {.size = title_size, .style = "strong"});
    y += 3;
  }
  if (!subtitle.empty()) {
    y += text_size + 4;
    text({16, y}, shortened(subtitle, text_size, width - 32), {.style = "quiet"});
  }
  return y + 8;
}

double Canvas::legend(const std::vector<std::string>& names, double left, double top, double right,
                      bool markers) {
  if (names.empty()) return top;
  constexpr double row = 21, key = 14, gap = 20;
  double x = left, y = top + row / 2;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = shortened(names[i], text_size, right - left - key - 8);
    const double width = key + 7 + text_width(name, text_size);
    if (x > left && x + width > right) x = left, y += row;
    if (markers)
      marker({x + key / 2, y}, i, names[i]);
    else
      bar({x, y - 6, x + key, y + 6}, i, names[i]);
    text({x + key + 7, y + text_size * 0.36}, name);
    x += width + gap;
  }
  return y + row / 2 + 4;
}

void Canvas::tick_labels(const Scale& x, const std::vector<double>& ticks, double baseline, double right,
                         const std::function<void(double at)>& with_each) {
  double taken = -1e9;
  for (const double tick : ticks) {
    const std::string label = number_text(tick);
    const double at = x(tick), half = text_width(label, small_size) / 2;
    if (at - half < taken || at + half > right) continue;
    if (with_each) with_each(at);
    text({at, baseline}, label, {.anchor = "middle", .size = small_size, .style = "quiet"});
    taken = at + half + 7;
  }
}

double Canvas::axes(const Rect& area, const Scale& x, const std::vector<double>& x_ticks,
                    const std::string& x_name, const Scale& y, const std::string& y_name, bool percent) {
  tick_labels(x, x_ticks, area.bottom + 17, area.right + 28, [&](double at) {
    line({at, area.top}, {at, area.bottom}, "grid");
  });
  double free = area.bottom + 1e9;
  for (const double tick : y.ticks()) {
    const double at = y(tick);
    if (at > free) continue;
    line({area.left, at}, {area.right, at}, "grid");
    text({area.left - 7, at + small_size * 0.36}, tick_text(tick, percent),
         {.anchor = "end", .size = small_size, .style = "quiet"});
    free = at - small_size - 3;
  }
  line({area.left, area.bottom}, {area.right, area.bottom}, "axis");
  line({area.left, area.top}, {area.left, area.bottom}, "axis");
  const double width = area.right - area.left, height = area.bottom - area.top;
  text({area.left + width / 2, area.bottom + 40}, shortened(x_name, text_size, width), {.anchor = "middle"});
  text({area.left - y_axis_width(y, percent) + 16 + text_size * 0.8, area.top + height / 2},
       shortened(y_name, text_size, height), {.anchor = "middle", .angle = -90});
  return area.bottom + 52;
}

std::string Canvas::document(double width, double height, const std::string& title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n{4}</svg>\n",
      px(width), px(height), escaped(title), style_sheet(), body_);
}

double y_axis_width(const Scale& y, bool percent) {
  double labels = 0;
  for (const double tick : y.ticks())
    labels = std::max(labels, text_width(tick_text(tick, percent), small_size));
  return 16 + text_size + 10 + labels + 7;
}

}  // namespace pleat::plot::svg
