#include "pleat/bench/ask/answer.h"

#include <sstream>

#include "pleat/bench/table.h"
#include "pleat/core/base/format.h"
#include "pleat/profile/compare.h"

namespace pleat::bench::ask {

std::string wrapped(const std::string& sentence, const std::string& first) {
  constexpr std::size_t line_length = 100;
  const std::string indent(benchmark::display_width(first), ' ');
  std::istringstream words(sentence);
  std::string result = first;
  std::size_t length = indent.size();
  bool begins = true;
  for (std::string word; words >> word;) {
    const std::size_t width = benchmark::display_width(word);
    if (!begins && length + 1 + width > line_length) {
      result += '\n' + indent;
      length = indent.size();
      begins = true;
    }
    result += (begins ? "" : " ") + word;
    length += width + (begins ? 0 : 1);
    begins = false;
  }
  return result + '\n';
}

std::string text(const Table& table) {
  std::vector<std::vector<std::string>> lines{table.columns};
  for (const auto& row : table.rows) {
    check<ValueError>(row.size() == table.columns.size(), "ask: a row of \"{}\" needs {} cells, got {}",
                      table.title, table.columns.size(), row.size());
    lines.push_back(row);
  }
  std::vector<bool> is_text(table.columns.size(), false);
  is_text[0] = true;
  return table.title + '\n' + aligned(lines, is_text);
}

std::string text(const Answer& answer) {
  std::string result;
  for (const std::string& line : answer.setup) result += wrapped(line);
  for (const Table& table : answer.tables) result += '\n' + text(table);
  if (!answer.profile.empty()) result += '\n' + answer.profile;
  result += "\nMedians; ~ where the quartiles are more than a tenth apart.\n\nConclusion\n";
  for (const std::string& sentence : answer.conclusion) result += wrapped(sentence, "- ");
  return result;
}

}  // namespace pleat::bench::ask
