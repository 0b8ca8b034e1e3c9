#include "pleat/tests/headers.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <utility>

namespace pleat_test {
namespace {

namespace fs = std::filesystem;
using Kind = Declaration::Kind;

/// The declaration that begins with a line, without its comment; the name is empty when none does.
Declaration declaration_in(const std::string& line) {
  static const std::regex function(
      "^(?:inline )?(?:const )?[A-Za-z_:<>,0-9]+(?: [A-Za-z_:<>,0-9]+>)?[&*]? ([a-z_0-9]+)\\(.*");
  static const std::regex taken_over("^using (ops::)?([a-z_0-9]+);.*");
  static const std::regex alias("^using ([A-Za-z0-9]+) = ([^;]+).*");
  static const std::regex type("^(?:class|struct) ([A-Za-z0-9]+)(?: : (?:public )?(.*))? \\{.*");
  std::smatch found;
  if (std::regex_match(line, found, type)) return {Kind::type, found[1], "", found[2]};
  if (std::regex_match(line, found, taken_over)) return {Kind::function, found[2], "", found[2]};
  if (std::regex_match(line, found, alias)) return {Kind::alias, found[1], "", found[2]};
  if (std::regex_match(line, found, function)) return {Kind::function, found[1], ""};
  return {};
}

void take_comment_behind(Declaration& declaration, const std::string& line, std::size_t behind) {
  declaration.comment = line.substr(behind + 5);
  declaration.own_comment = true;
}

}  // namespace

fs::path source_root() { return PLEAT_SOURCE_DIR; }

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<fs::path> public_headers(const std::string& folder) {
  std::vector<fs::path> headers;
  for (const auto& entry : fs::recursive_directory_iterator(source_root() / folder))
    if (entry.path().extension() == ".h" && text_of(entry.path()).rfind("// Private header", 0) != 0)
      headers.push_back(entry.path());
  std::sort(headers.begin(), headers.end());
  return headers;
}

std::vector<fs::path> function_headers() {
  std::vector<fs::path> headers = public_headers("ops");
  std::erase_if(headers, [](const fs::path& header) {
    return header.filename() == "options.h" || header.filename() == "bounds.h" ||
           text_of(header).find("namespace ops") != std::string::npos ||
           text_of(header).find("namespace pleat::ops") != std::string::npos;
  });
  headers.insert(headers.begin(),
                 {source_root() / "autograd/copy.h", source_root() / "autograd/functions.h"});
  return headers;
}

std::vector<Declaration> declarations(const fs::path& header) {
  static const std::regex forward("forward\\(const Tensor& x\\) override \\{ return ([a-z_0-9]+)\\(.*");
  std::vector<Declaration> all;
  std::string comment;
  bool in_comment = false, in_detail = false;
  bool open = false;       ///< whether the last declaration goes on in the next line
  bool commented = false;  ///< whether the next declaration is the first after a comment
  std::ifstream stream(header);
  for (std::string line, more; std::getline(stream, line);) {
    if (line.starts_with("using ") && line.ends_with(" =") && std::getline(stream, more))
      line += more.substr(more.find_first_not_of(' ') - 1);
    if (line == "namespace detail {") in_detail = true;
    if (line == "}  // namespace detail") in_detail = false;
    if (line.rfind("///", 0) == 0) {
      if (!in_comment) comment.clear();
      in_comment = commented = true;
      comment += line.substr(std::min<std::size_t>(4, line.size())) + '\n';
      continue;
    }
    in_comment = false;
    if (line.empty()) {
      comment.clear();
      continue;
    }
    const std::size_t behind = line.find("///< ");
    if (open && line[0] == ' ') {  // goes on
      if (behind != std::string::npos) take_comment_behind(all.back(), line, behind);
      open = line.find_first_of(";{") == std::string::npos;
    }
    std::smatch found;
    if (!all.empty() && all.back().kind == Kind::type && std::regex_search(line, found, forward))
      all.back().forwards_to = found[1];
    if (in_detail) continue;
    Declaration declaration = declaration_in(line);
    if (declaration.name.empty()) continue;
    declaration.comment = comment;
    declaration.own_comment = std::exchange(commented, false);
    if (behind != std::string::npos) take_comment_behind(declaration, line, behind);
    open = line.find_first_of(";{") == std::string::npos;
    all.push_back(std::move(declaration));
  }
  return all;
}

}  // namespace pleat_test
