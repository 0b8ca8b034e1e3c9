#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/errors/mistakes.h"
#include "pleat/tests/temporary_directory.h"

/// docs/errors.md shows each mistake with the message it gets. Written anew by
///   PLEAT_WRITE_ERRORS=docs/errors.md pleat_tests "docs/errors.md is what Pleat says"

namespace {

/// The folder in which a program runs, for a scope.
class WorkIn {
 public:
  explicit WorkIn(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkIn() { std::filesystem::current_path(before_); }
  WorkIn(const WorkIn&) = delete;
  WorkIn& operator=(const WorkIn&) = delete;

 private:
  std::filesystem::path before_;
};

std::string message_of(const Mistake& mistake) {
  try {
    mistake.run();
  } catch (const pleat::Error& error) {
    return error.what();
  }
  FAIL("no error: " << mistake.code);
  return {};
}

std::string page() {
  const pleat_test::TemporaryDirectory folder;
  const WorkIn there(folder.path());
  std::string text =
      "# Errors\n\nCommon mistakes, each a line, and below it the message of Pleat's exception. A test "
      "(`tests/errors/`)\nruns every line and compares the message with this page. All exceptions derive "
      "from "
      "`pleat::Error`. An\noperation that throws has changed none of its arguments.\n";
  for (const MistakeSection& section :
       {tensor_mistakes(), function_mistakes(), convolution_mistakes(), tape_mistakes(), module_mistakes(),
        loss_mistakes(), optimizer_mistakes(), data_mistakes(), export_mistakes(), inference_mistakes(),
        file_mistakes()}) {
    text += "\n## " + section.title + "\n\n" + section.given + "\n\n```cpp\n";
    for (const Mistake& mistake : section.mistakes) {
      text += mistake.code + '\n';
      std::string said = message_of(mistake);
      // A path as the system joins it.
      const auto from = std::string("'.") + static_cast<char>(std::filesystem::path::preferred_separator);
      if (const auto at = said.find(from); at != std::string::npos) said.replace(at, from.size(), "'./");
      std::istringstream message(said);
      for (std::string line; std::getline(message, line);) text += "    // " + line + '\n';
    }
    text += "```\n";
  }
  return text;
}

}  // namespace

TEST_CASE("docs/errors.md is what Pleat says", "[cpu]") {
  const std::string now = page();
  if (const char* path = std::getenv("PLEAT_WRITE_ERRORS")) {
    std::ofstream(path) << now;
    return;
  }
  std::ifstream file(PLEAT_DOCS_DIR "/errors.md");
  std::stringstream written;
  written << file.rdbuf();
  std::istringstream left(written.str());
  std::istringstream right(now);
  std::string in_page, said;
  for (int line = 1; std::getline(right, said); ++line) {
    INFO("docs/errors.md, line " << line);
    REQUIRE(std::getline(left, in_page));
    REQUIRE(in_page == said);
  }
  REQUIRE_FALSE(std::getline(left, in_page));
}
