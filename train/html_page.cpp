#include "pleat/train/html_page.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/data/image.h"
#include "pleat/plot/svg.h"

namespace pleat::train {
namespace {

using plot::svg::escaped;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1d2126; --quiet: #666c75; --line: #d9dce1; --ground: #ffffff; --tint: 0, 114, 178; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --quiet: #a2a9b3; --line: #3a3f47; --ground: #16191d; --tint: 58, 160, 224; } }
body { color: var(--ink); background: var(--ground); font: 15px/1.5 "DejaVu Sans", system-ui, sans-serif; max-width: 1120px; margin: 32px auto; padding: 0 24px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 40px 0 12px; }
.subtitle { color: var(--quiet); margin: 4px 0 0; }
.chart svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th { text-align: left; font-weight: 600; }
td, th { padding: 4px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } td.strong { font-weight: 700; }
pre { background: rgba(var(--tint), .08); padding: 12px 16px; overflow-x: auto; border-radius: 6px; }
.pictures { display: flex; flex-wrap: wrap; gap: 14px; } figure { margin: 0; } figcaption { font-size: 12px; color: var(--quiet); }
img { image-rendering: pixelated; display: block; border-radius: 3px; })";

constexpr int caption_width = 122;  ///< pixels on the screen

/// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < given ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j) text += j <= given ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace

HtmlPage::HtmlPage(const std::string& title, const std::string& subtitle)
    : title_(escaped(title)),
      body_("<h1>" + title_ + "</h1>\n<p class=\"subtitle\">" + escaped(subtitle) + "</p>\n") {}

void HtmlPage::heading(const std::string& text) { body_ += "<h2>" + escaped(text) + "</h2>\n"; }
void HtmlPage::paragraph(const std::string& text) { body_ += "<p>" + escaped(text) + "</p>\n"; }
void HtmlPage::code(const std::string& text) { body_ += "<pre>" + escaped(text) + "</pre>\n"; }

void HtmlPage::table(const std::vector<std::string>& titles, const std::vector<Row>& rows) {
  body_ += "<div class=\"wide\"><table>\n<tr>";
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const bool number = !rows.empty() && i < rows[0].size() && rows[0][i].is_number;
    body_ += fmt::format("<th{}>{}</th>", number ? " class=\"number\"" : "", escaped(titles[i]));
  }
  body_ += "</tr>\n";
  for (const Row& row : rows) {
    body_ += "<tr>";
    for (const Cell& cell : row) {
      const char* classes = cell.is_number ? (cell.strong ? " class=\"number strong\"" : " class=\"number\"")
                                           : (cell.strong ? " class=\"strong\"" : "");
      const std::string ground =
          cell.share > 0 ? fmt::format(" style=\"background: rgba(var(--tint), {:.3f})\"", cell.share) : "";
      body_ += fmt::format("<td{}{}>{}</td>", classes, ground, escaped(cell.text));
    }
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void HtmlPage::pictures(const std::vector<Picture>& pictures) {
  body_ += "<div class=\"pictures\">\n";
  for (const Picture& picture : pictures)
    body_ += fmt::format(
        "<figure style=\"width: {0}px\"><img width=\"{1}\" alt=\"{2}\" src=\"data:image/png;base64,{3}\">"
        "<figcaption>{2}</figcaption></figure>\n",
        picture.caption.empty() ? picture.width : std::max(picture.width, caption_width), picture.width,
        escaped(picture.caption), base64(data::encode_png(picture.image)));
  body_ += "</div>\n";
}

std::string HtmlPage::document() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<title>" +
         title_ + "</title>\n<style>" + std::string(style) + "\n</style>\n</head>\n<body>\n" + body_ +
         "</body>\n</html>\n";
}

}  // namespace pleat::train
