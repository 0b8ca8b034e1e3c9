#include "pleat/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pleat/plot/svg.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using plot::Bar, plot::BarChart, plot::LineChart, plot::Point, plot::Roofline, plot::to_svg;
using plot::svg::escaped, plot::svg::number_text, plot::svg::Rect, plot::svg::Scale, plot::svg::shortened,
    plot::svg::text_width;

namespace {

/// One text element as it was drawn.
struct Label {
  std::string text;
  Rect place;
};

/// A small reader of XML: enough to say where a document is not well-formed, and to find attributes.
class Xml {
 public:
  explicit Xml(const std::string& text) : text_(text) { read(); }

  std::string error;  ///< empty: well-formed
  std::vector<Label> labels;
  double width = 0, height = 0;
  std::vector<double> numbers;  ///< of all attributes that are coordinates

 private:
  void fail(const std::string& what, std::size_t at) {
    if (error.empty()) error = what + " at " + std::to_string(at) + ": " + text_.substr(at, 60);
  }

  static std::string decoded(std::string text) {
    for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}})
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += 1)
        text.replace(at, std::string(from).size(), to);
    return text;
  }

  void check_text(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const auto c = static_cast<unsigned char>(text_[i]);
      if (c < 0x20 && c != '\n' && c != '\t') fail("a control character", i);
      if (c == '<') fail("a bare <", i);
      if (c != '&') continue;
      bool known = false;
      for (const char* entity : {"&lt;", "&gt;", "&quot;", "&amp;"})
        known |= text_.compare(i, std::string(entity).size(), entity) == 0;
      if (!known) fail("a bare &", i);
    }
  }

  static std::optional<std::string> attribute(const std::string& tag, const std::string& name) {
    const auto at = tag.find(" " + name + "=\"");
    if (at == std::string::npos) return {};
    const auto first = at + name.size() + 3;
    return tag.substr(first, tag.find('"', first) - first);
  }
  static double number_of(const std::string& tag, const std::string& name) {
    const auto text = attribute(tag, name);
    return text ? std::stod(*text) : 0;
  }

  void look_at(const std::string& tag) {
    for (const char* name :
         {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "font-size"})
      if (const auto value = attribute(tag, name)) numbers.push_back(std::stod(*value));
    if (tag.starts_with("<svg")) width = number_of(tag, "width"), height = number_of(tag, "height");
  }

  void add_label(const std::string& tag, const std::string& text) {
    const double x = number_of(tag, "x"), y = number_of(tag, "y"), size = number_of(tag, "font-size");
    const std::string anchor = attribute(tag, "text-anchor").value_or("start");
    const double w = text_width(text, size);
    const double left = anchor == "start" ? x : anchor == "end" ? x - w : x - w / 2;
    const auto turn = attribute(tag, "transform");
    if (!turn) {
      labels.push_back({text, {left, y - size * 0.75, left + w, y + size * 0.2}});
    } else if (turn->starts_with("rotate(-90")) {
      labels.push_back({text, {x - size * 0.75, y - w / 2, x + size * 0.2, y + w / 2}});
    }  // text along a slanted roof has no upright box
  }

  void read() {
    std::vector<std::string> open;
    std::string text_tag;
    for (std::size_t at = 0; at < text_.size() && error.empty();) {
      const std::size_t begin = text_.find('<', at);
      check_text(at, std::min(begin, text_.size()));
      if (begin == std::string::npos) break;
      if (!text_tag.empty()) add_label(text_tag, decoded(text_.substr(at, begin - at)));
      text_tag.clear();
      const std::size_t end = text_.find('>', begin);
      if (end == std::string::npos) return fail("a tag without end", begin);
      const std::string tag = text_.substr(begin, end + 1 - begin);
      const std::string name = tag.substr(1, tag.find_first_of(" />", 2) - 1);
      at = end + 1;
      if (tag[1] == '/') {
        if (open.empty() || "</" + open.back() + ">" != tag) return fail("an end without a beginning", begin);
        open.pop_back();
        continue;
      }
      if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) fail("an open quote", begin);
      look_at(tag);
      if (tag[tag.size() - 2] == '/') continue;
      open.push_back(name);
      if (name == "text") text_tag = tag;
    }
    if (!open.empty()) fail("<" + open.back() + "> is not closed", text_.size());
  }

  const std::string& text_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Checks what every picture must hold; returns its labels.
std::set<std::string> check_picture(const std::string& picture) {
  const Xml xml(picture);
  INFO(picture.substr(0, 20000));
  CHECK(xml.error == "");
  CHECK_FALSE(contains(picture, "nan"));
  CHECK_FALSE(contains(picture, "=\"inf"));
  CHECK_FALSE(contains(picture, "=\"-inf"));
  CHECK(contains(picture, "prefers-color-scheme:dark"));
  for (const double number : xml.numbers) CHECK(std::isfinite(number));
  CHECK(xml.width > 100);
  CHECK(xml.height > 30);
  const Rect page{-0.01, -0.01, xml.width + 0.01, xml.height + 0.01};
  std::set<std::string> labels;
  for (std::size_t i = 0; i < xml.labels.size(); ++i) {
    CAPTURE(xml.labels[i].text);
    labels.insert(xml.labels[i].text);
    CHECK(xml.labels[i].place.inside(page));
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(xml.labels[j].text);
      CHECK_FALSE(xml.labels[i].place.overlaps(xml.labels[j].place));
    }
  }
  return labels;
}

const double extremes[] = {0,    -1,    1e-320,  1e-300, 1e-9, 1,        1e9,
                           1e30, 1e300, 1.7e308, -1e300, NAN,  INFINITY, -INFINITY};
const std::string hostile = "<a href=\"x\">&amp; ]]> 'q' \x01\xFF\xC0\x80 µ → 畳";

}  // namespace

TEST_CASE("plot: numbers have three digits that count", "[plot]") {
  const auto text = GENERATE(table<double, std::string>({{0, "0"},
                                                         {1, "1"},
                                                         {12.34, "12.3"},
                                                         {0.012345, "0.0123"},
                                                         {1234, "1,234"},
                                                         {999999, "999,999"},
                                                         {123456.7, "123,457"},
                                                         {1e6, "10⁶"},
                                                         {-2.5e7, "-2.5×10⁷"},
                                                         {9.999e6, "10⁷"},
                                                         {1.234e-5, "1.23×10⁻⁵"},
                                                         {-3, "-3"},
                                                         {0.0001, "0.0001"},
                                                         {NAN, "–"},
                                                         {INFINITY, "∞"}}));
  CHECK(number_text(std::get<0>(text)) == std::get<1>(text));
}

TEST_CASE("plot: ticks are round, few, and hold the values between them", "[plot]") {
  for (const double low : extremes)
    for (const double high : extremes) {
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      CAPTURE(low, high);
      for (Scale scale : {Scale::linear(low, high), Scale::logarithmic(std::abs(low), std::abs(high)),
                          Scale::linear(0, high > 0 ? high : 1)}) {
        REQUIRE(scale.ticks().size() >= 2);
        CHECK(scale.ticks().size() <= 14);
        CHECK(scale.low() < scale.high());
        scale.place(10, 110);
        for (const double value : {low, high, scale.low(), scale.high()}) {
          CHECK(scale(value) >= 9.99);
          CHECK(scale(value) <= 110.01);
        }
      }
    }
  const Scale scale = Scale::linear(0, 87);
  CHECK(scale.ticks() == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(Scale::logarithmic(3, 4000).ticks() == std::vector<double>{1, 10, 100, 1000, 10000});
}

TEST_CASE("plot: a scale maps its ends to pixels, and logarithms evenly", "[plot]") {
  Scale scale = Scale::logarithmic(1, 10000);
  scale.place(100, 500);
  CHECK(scale(1) == Approx(100));
  CHECK(scale(100) == Approx(300));
  CHECK(scale(1e4) == Approx(500));
  CHECK(scale(1e9) == Approx(500));
}

TEST_CASE("plot: markup, control characters and broken UTF-8 are escaped", "[plot]") {
  CHECK(escaped("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;");
  CHECK(escaped("µs → 畳") == "µs → 畳");
  CHECK(escaped("a\x01z") == "a\xEF\xBF\xBDz");
  CHECK(escaped("\xC0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(escaped("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(escaped("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("plot: a long text is cut between characters", "[plot]") {
  CHECK(shortened("short", 13, 500) == "short");
  const std::string cut = shortened("µµµµµµµµµµµµµµµµ", 13, 60);
  CHECK(cut.ends_with("…"));
  CHECK(text_width(cut, 13) <= 60);
  CHECK(escaped(cut) == cut);
}

TEST_CASE("plot: bars", "[plot]") {
  BarChart chart{.title = "Times", .subtitle = "cpu", .axis = "time [ms]", .groups = {}, .series = {}};
  SECTION("nothing") { check_picture(to_svg(chart)); }
  SECTION("one") {
    chart.groups = {"n128 c64 k64 hw32 r3 s1 p1"};
    chart.series = {{"direct", {{12.3, 12, 14, "87 %"}}}};
    const auto labels = check_picture(to_svg(chart));
    CHECK(labels.contains("12.3 · 87 %"));
    CHECK(labels.contains("n128 c64 k64 hw32 r3 s1 p1"));
    CHECK(labels.contains("time [ms]"));
  }
  SECTION("many, some of them missing") {
    for (int g = 0; g < 30; ++g) chart.groups.push_back("problem " + std::to_string(g));
    for (int s = 0; s < 12; ++s) {
      BarChart::Series series{"implementation " + std::to_string(s), {}};
      for (int g = 0; g < 30 - s; ++g)
        series.bars.push_back(g % 7 == 3 ? Bar{.note = "does not do " + std::string(200, 'x')}
                                         : Bar{.value = g * 1.7 + s, .low = g * 1.6 + s, .high = g * 2. + s});
      chart.series.push_back(series);
    }
    const auto labels = check_picture(to_svg(chart));
    CHECK(labels.contains("implementation 11"));
  }
  SECTION("extreme values and names") {
    for (const double value : extremes) {
      chart.groups.push_back(hostile + std::string(value > 0 ? 150 : 0, 'W'));
      chart.series.resize(1);
      chart.series[0].name = hostile;
      chart.series[0].bars.push_back({value, value / 2, value * 2, hostile});
      chart.title = chart.axis = std::string(300, 'm');
      check_picture(to_svg(chart));
    }
  }
  SECTION("a bar is as long as its value") {
    chart.groups = {"a", "b"};
    chart.series = {{"x", {{10}, {20}}}};
    const std::string picture = to_svg(chart);
    std::vector<double> widths;
    for (std::size_t at = 0; (at = picture.find("<rect class=\"b s0\"", at)) != std::string::npos; ++at)
      widths.push_back(std::stod(picture.substr(picture.find("width=\"", at) + 7)));
    REQUIRE(widths.size() == 2);
    CHECK(widths[1] / widths[0] == Approx(2).epsilon(0.01));
  }
}

TEST_CASE("plot: lines", "[plot]") {
  LineChart chart{.title = "Scaling", .x_axis = "batch size", .y_axis = "time [ms]"};
  chart.percent = GENERATE(false, true);
  chart.log_x = GENERATE(true, false);
  chart.log_y = GENERATE(true, false);
  SECTION("nothing") { check_picture(to_svg(chart)); }
  SECTION("one point") {
    chart.lines = {{"direct", {{128, 3.5}}}};
    check_picture(to_svg(chart));
  }
  SECTION("many") {
    for (int s = 0; s < 20; ++s) {
      LineChart::Line line{"implementation " + std::to_string(s), {}};
      for (int n = 1; n < 3000; n *= 2) line.points.push_back({n * 1.0, n * 0.1 + s});
      chart.lines.push_back(line);
    }
    const auto labels = check_picture(to_svg(chart));
    CHECK(labels.contains("implementation 19"));
    if (chart.log_x) CHECK(labels.contains("512"));
  }
  SECTION("extreme values") {
    for (const double x : extremes)
      for (const double y : extremes) {
        chart.lines = {{hostile, {{x, y}, {1, 1}, {2, y}}}};
        chart.y_axis = hostile + std::string(200, 'W');
        check_picture(to_svg(chart));
      }
  }
}

TEST_CASE("plot: roofline", "[plot]") {
  Roofline chart{.title = "Roofline",
                 .peaks = {{"FMA float32", 500}, {"FMA float64", 250}},
                 .bandwidths = {{"DRAM", 40}, {"cache", 150}},
                 .points = {}};
  SECTION("no points") { CHECK(check_picture(to_svg(chart)).contains("FMA float32: 500 GFLOP/s")); }
  SECTION("nothing at all") { check_picture(to_svg(Roofline{.title = "empty", .points = {}})); }
  SECTION("points without roofs") {
    check_picture(to_svg(Roofline{.title = "bare", .points = {{"relu", "cpu", 0.125, 5}}}));
  }
  SECTION("few names stand at their points") {
    chart.points = {{"relu", "cpu", 0.125, 5}, {"gelu", "cpu", 2, 30}, {"relu", "grid", 0.125, 2}};
    const auto labels = check_picture(to_svg(chart));
    CHECK(labels.contains("relu"));
    CHECK(labels.contains("gelu"));
  }
  SECTION("many long names, close together") {
    for (int p = 0; p < 40; ++p)
      for (int s = 0; s < 5; ++s)
        chart.points.push_back({"n128 c64 k64 hw32 r3 s1 p" + std::to_string(p),
                                "implementation " + std::to_string(s), 100. + p, 200. + 20 * s + p});
    const auto labels = check_picture(to_svg(chart));
    CHECK(labels.contains("40 · n128 c64 k64 hw32 r3 s1 p39"));
  }
  SECTION("extreme values") {
    for (const double x : extremes)
      for (const double y : extremes) {
        chart.points = {{hostile, hostile, x, y}, {"b", "c", 1, 1}};
        chart.peaks.front().value = y;
        chart.bandwidths.front().value = x;
        check_picture(to_svg(chart));
      }
  }
}

TEST_CASE("plot: charts side by side", "[plot]") {
  LineChart loss{.title = "Loss", .x_axis = "epoch"}, accuracy = loss;
  accuracy.title = "Accuracy";
  accuracy.percent = true;
  SECTION("nothing") { check_picture(to_svg("empty", {})); }
  SECTION("charts without values") { check_picture(to_svg("empty", {loss, accuracy})); }
  SECTION("values, one of them missing, and more than get markers") {
    for (int epoch = 1; epoch <= 50; ++epoch) {
      loss.add("train 0.1", {epoch * 1., epoch == 3 ? NAN : 2. / epoch});
      accuracy.add("test 90 %", {epoch * 1., 1 - 1. / epoch});
    }
    accuracy.add("one point", {7, 0.5});
    const std::string picture = to_svg("a network", {loss, accuracy});
    check_picture(picture);
    for (const char* text : {"a network", "Loss", "Accuracy", "epoch", "train 0.1", "test 90 %", "100 %"})
      CHECK(contains(picture, std::string(">") + text + "<"));
    CHECK(contains(picture, "<polyline"));
    CHECK_FALSE(contains(picture, "train 0.1: "));
    CHECK(contains(picture, "one point: "));
  }
}

TEST_CASE("plot: bars and points find their group and series by name", "[plot]") {
  BarChart bars;
  bars.add("one", "a", {.value = 1});
  bars.add("two", "b", {.value = 2});
  bars.add("two", "a", {.value = 3, .low = 2.5});
  CHECK(bars.groups == std::vector<std::string>{"one", "two"});
  REQUIRE(bars.series.size() == 2);
  CHECK(bars.series[0].name == "a");
  REQUIRE(bars.series[0].bars.size() == 2);
  CHECK(bars.series[0].bars[1].value == 3);
  CHECK(bars.series[0].bars[1].low == 2.5);
  CHECK(std::isnan(bars.series[1].bars[0].value));
  LineChart lines;
  lines.add("a", {1, 1});
  lines.add("a", {2, 4});
  REQUIRE(lines.lines.size() == 1);
  CHECK(lines.lines[0].points[1].y == 4);
}
