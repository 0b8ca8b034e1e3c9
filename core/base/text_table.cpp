#include "pleat/core/base/text_table.h"

#include <algorithm>
#include <utility>

#include "pleat/core/base/format.h"

namespace pleat {

std::size_t display_width(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') i = std::min(text.find('m', i), text.size());
    // Bytes 10xxxxxx continue a character.
    else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
      ++width;
  }
  return width;
}

std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (auto i = static_cast<std::int64_t>(text.size()) - 3; i > 0; i -= 3)
    text.insert(static_cast<std::size_t>(i), 1, ',');
  return text;
}

TextTable::TextTable(std::vector<Column> columns, std::string indent, std::string gap)
    : columns_(std::move(columns)), indent_(std::move(indent)), gap_(std::move(gap)) {}

void TextTable::add(std::vector<std::string> cells, const char* color) {
  check<ValueError>(cells.size() <= columns_.size(), "table: a line has at most {} cells, got {}",
                    columns_.size(), cells.size());
  lines_.push_back({Line::Kind::cells, std::move(cells), color});
}

void TextTable::add_text(const std::string& text) { lines_.push_back({Line::Kind::text, {text}}); }

void TextTable::add_rule(bool solid) {
  lines_.push_back({solid ? Line::Kind::solid_rule : Line::Kind::rule, {}});
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(column.least);
  for (const Line& line : lines_)
    for (std::size_t c = 0; line.kind == Line::Kind::cells && c < line.cells.size(); ++c)
      widths[c] = std::max(widths[c], display_width(line.cells[c]));
  std::string all;
  for (const Line& line : lines_) {
    const std::string one = text(line, widths);
    all += line.color != nullptr ? line.color + one + "\x1b[0m\n" : one + '\n';
  }
  return all;
}

std::string TextTable::text(const Line& line, const std::vector<std::size_t>& widths) const {
  if (line.kind == Line::Kind::text) return line.cells[0];
  std::string text = indent_;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    const std::string cell = line.kind != Line::Kind::cells ? std::string(widths[c], '-')
                             : c < line.cells.size()        ? line.cells[c]
                                                            : "";
    const std::string space(widths[c] - display_width(cell), ' ');
    if (c > 0) text += line.kind == Line::Kind::solid_rule ? std::string(gap_.size(), '-') : gap_;
    text += columns_[c].left ? cell + space : space + cell;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace pleat
