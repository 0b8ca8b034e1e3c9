#include "pleat/core/files/json_input.h"

#include <array>

#include "pleat/core/base/format.h"

namespace pleat {

void check_json_size(const std::string& text, const std::string& where) {
  std::array<int, most_json_depth + 1> members{};  // of the object at each depth
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      check<FileError>(++depth <= std::size_t{most_json_depth},
                       "{}: is nested too deeply: more than {} lists and objects", where, most_json_depth);
      members[depth] = 0;
    } else if (c == ':') {
      check<FileError>(++members[depth] <= most_json_members, "{}: has an object of more than {} members",
                       where, most_json_members);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

std::string json_cause(const std::exception& error) {
  constexpr std::size_t longest = 200;
  std::string text = error.what();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  if (text.size() > longest) text = text.substr(0, longest) + " ...";
  return text;
}

}  // namespace pleat
