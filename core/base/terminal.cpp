#include "pleat/core/base/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "pleat/core/base/text_table.h"
#include "pleat/core/system/console.h"

namespace pleat {
namespace {

constexpr int usual_width = 80;

/// What COLUMNS says; 0 when it says nothing.
int wanted_columns() {
  const char* value = std::getenv("COLUMNS");
  return value != nullptr ? std::max(0, std::atoi(value)) : 0;
}

/// The column below which a line goes on.
std::size_t hanging_indent(const std::string& line, std::size_t width) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t second = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  if (second != std::string::npos && display_width(line.substr(0, second)) <= width / 2)
    return display_width(line.substr(0, second));
  const std::size_t behind_dash = first + (first < line.size() && line[first] == '-' ? 2 : 0);
  return std::min(behind_dash, width / 2);
}

/// A word, or where it takes more than `room` columns its pieces, which end in commas.
std::vector<std::string> pieces_of(const std::string& word, std::size_t room) {
  std::vector<std::string> pieces(1);
  for (const char c : word) {
    pieces.back() += c;
    if (c == ',' && display_width(word) > room) pieces.emplace_back();
  }
  return pieces;
}

std::string wrapped_line(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  const std::size_t indent = hanging_indent(text, width);
  std::string all, line;
  // Spaces stay as they are, so that columns of the first line do.
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t word = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    std::string space = text.substr(begin, word - begin);
    for (const std::string& piece : pieces_of(text.substr(word, end - word), width - indent)) {
      if (line.find_first_not_of(' ') != std::string::npos && display_width(line + space + piece) > width) {
        all += line + '\n';
        line = std::string(indent, ' ');
        space.clear();
      }
      line += std::exchange(space, {}) + piece;
    }
    begin = end;
  }
  return all + line;
}

}  // namespace

int terminal_width(int descriptor) {
  const char* kind = std::getenv("TERM");
  if (!system::is_terminal(descriptor) || (kind != nullptr && std::string(kind) == "dumb")) return 0;
  const int found = system::terminal_columns(descriptor), columns = wanted_columns();
  if (found == 0) return columns > 0 ? columns : usual_width;
  return columns > 0 ? std::min(columns, found) : found;
}

int page_width(int descriptor) {
  if (const int width = terminal_width(descriptor); width > 0) return std::max(1, width - 1);
  const int columns = wanted_columns();
  return columns > 0 ? columns : usual_width;
}

std::string wrapped(const std::string& text, int width) {
  if (width <= 0) return text;
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);)
    all += wrapped_line(line, static_cast<std::size_t>(width)) + (lines.eof() ? "" : "\n");
  return all;
}

}  // namespace pleat
