#include "pleat/core/base/text_table.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/base/terminal.h"

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

std::string grouped(int64_t n) {
  std::string text = std::to_string(n);
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3)
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

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(column.least);
  for (const Line& line : lines_)
    for (std::size_t c = 0; line.kind == Line::Kind::cells && c < line.cells.size(); ++c)
      widths[c] = std::max(widths[c], display_width(line.cells[c]));
  return widths;
}

std::size_t TextTable::least_taken() const {
  const std::vector<std::size_t> all = widths();
  std::size_t taken = indent_.size() + gap_.size() * (all.empty() ? 0 : all.size() - 1);
  for (std::size_t c = 0; c < all.size(); ++c)
    taken += columns_[c].wraps > 0 ? std::min(all[c], columns_[c].wraps) : all[c];
  return taken;
}

std::string TextTable::leave_out(std::size_t column) {
  std::string title;
  const auto place = static_cast<std::ptrdiff_t>(column);
  columns_.erase(columns_.begin() + place);
  for (Line& line : lines_)
    if (line.kind == Line::Kind::cells && column < line.cells.size()) {
      if (title.empty()) title = line.cells[column];
      line.cells.erase(line.cells.begin() + place);
    }
  return title;
}

std::vector<std::string> TextTable::fit(std::size_t width) {
  const auto rank = [](const Column& one) {
    return one.importance > 0 ? one.importance : std::numeric_limits<int>::max();
  };
  std::vector<std::string> left_out;
  while (least_taken() > width) {
    const auto least = std::min_element(columns_.begin(), columns_.end(),
                                        [&](const Column& a, const Column& b) { return rank(a) < rank(b); });
    if (least == columns_.end() || least->importance <= 0) break;
    left_out.push_back(leave_out(static_cast<std::size_t>(least - columns_.begin())));
  }
  std::size_t room = width - std::min(width, least_taken());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].wraps == 0) continue;
    const std::size_t least = std::min(widths()[c], columns_[c].wraps);
    wrap(c, least + room);
    room -= std::min(room, widths()[c] - std::min(widths()[c], least));
  }
  return left_out;
}

// A cell of several lines becomes as many lines of the table.
void TextTable::wrap(std::size_t column, std::size_t width) {
  std::vector<Line> lines;
  for (Line& line : lines_) {
    if (line.kind != Line::Kind::cells || column >= line.cells.size()) {
      lines.push_back(std::move(line));
      continue;
    }
    std::istringstream parts(wrapped(line.cells[column], static_cast<int>(width)));
    std::getline(parts, line.cells[column]);
    lines.push_back(line);
    for (std::string part; std::getline(parts, part);) {
      Line& next =
          lines.emplace_back(Line{Line::Kind::cells, std::vector<std::string>(column + 1), line.color});
      next.cells[column] = part;
    }
  }
  lines_ = std::move(lines);
}

std::string TextTable::text() const {
  const std::vector<std::size_t> widths = this->widths();
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
