// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::train {

/// A page of one file: pictures and charts are inside, and nothing is loaded from elsewhere. It follows
/// the reader's light or dark colours. Text may be any UTF-8.
class HtmlPage {
 public:
  HtmlPage(const std::string& title, const std::string& subtitle);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  /// Text as it is, with its line breaks.
  void code(const std::string& text);
  /// An SVG document.
  void chart(const std::string& svg) { body_ += "<div class=\"chart\">" + svg + "</div>\n"; }

  struct Cell {
    std::string text;
    bool is_number = false;  ///< stands right
    double share = 0;        ///< 0 to 1: how deeply its ground is coloured
    bool strong = false;
  };
  using Row = std::vector<Cell>;
  void table(const std::vector<std::string>& titles, const std::vector<Row>& rows);

  struct Picture {
    Tensor image;  ///< as data::encode_png takes it
    std::string caption = {};
    int width = 96;  ///< pixels on the screen
  };
  /// Pictures side by side.
  void pictures(const std::vector<Picture>& pictures);

  std::string document() const;

 private:
  std::string title_, body_;
};

}  // namespace pleat::train
