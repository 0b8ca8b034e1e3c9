#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// The public headers of the source tree, as text. They are read by their form: declarations of a namespace
/// begin a line, a comment stands above, and no blank line between.

namespace pleat_test {

/// The folder of the sources.
std::filesystem::path source_root();
std::string text_of(const std::filesystem::path& file);
/// The headers of a folder that are installed, with those in folders below it, by name.
std::vector<std::filesystem::path> public_headers(const std::string& folder);
/// Those that declare the differentiable functions.
std::vector<std::filesystem::path> function_headers();

struct Declaration {
  enum class Kind { function, type, alias };
  Kind kind;
  std::string name;
  /// The one behind it in its line, else the one above, without slashes. Declarations that follow each other
  /// without a blank line share the comment of the first.
  std::string comment;
  /// Of a type: what it derives from. Of an alias, and of a function taken over by `using`: what it stands
  /// for.
  std::string base = {};
  /// Of a type: the function that its forward returns, where it is a single call.
  std::string forwards_to = {};
  bool own_comment = false;  ///< whether the comment stands at this one
};
/// All of namespace scope but for those in a namespace detail; overloads each.
std::vector<Declaration> declarations(const std::filesystem::path& header);

}  // namespace pleat_test
