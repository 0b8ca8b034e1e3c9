#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <windows.h>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/files/input_file.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("paths of Windows have drives, and either separator", "[core]") {
  const TemporaryDirectory directory;
  std::string path = (directory / "x").string();
  REQUIRE(path.substr(1, 2) == ":\\");
  write_file("test", path, "1");
  std::replace(path.begin(), path.end(), '\\', '/');
  CHECK(InputFile("read", path).size() == 1);
  write_file("test", path, "22");
  CHECK(InputFile("read", (directory / "X").string()).size() == 2);  // names are alike in either case
  CHECK_THROWS_WITH(write_file("test", directory / "a?b", "x"), Contains("cannot write"));
  write_file("test", "NUL", "x");
  CHECK_THROWS_WITH(InputFile("read", "NUL"), Contains("is not a regular file, but a device"));
}

TEST_CASE("a path of a string is taken for UTF-8", "[core]") {
  for (const auto& [text, path] :
       {std::pair("\u00f6 \u6570", L"\u00f6 \u6570"), {"\U0001F600.x", L"\U0001F600.x"}}) {
    CHECK(fs::path(text).native() == path);
    CHECK(fs::path(path).string() == text);
  }
  // A continuation alone, none, one too many for the number, half of a pair, beyond Unicode.
  for (const char* wrong : {"\xa4", "\xc3", "\xc3x", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    CHECK_THROWS_AS(fs::path(wrong), fs::filesystem_error);
}

TEST_CASE("a file that another program has open is named with the reason", "[core]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "x";
  write_file("test", path, "old");
  HANDLE other = CreateFileW(path.c_str(), GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
  REQUIRE(other != INVALID_HANDLE_VALUE);
  CHECK_THROWS_WITH(InputFile("read", path), Contains("Another program has it open"));
  CHECK_THROWS_WITH(write_file("test", path, "new"),
                    Contains("cannot replace") && Contains("has it open or mapped"));
  CloseHandle(other);
  CHECK(InputFile("read", path).size() == 3);
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a file is replaced while it is read, and the reader keeps the old one", "[core]") {
  if (!replaces_open_files()) return skip("the system replaces no file that is open");
  const TemporaryDirectory directory;
  const fs::path path = directory / "x";
  write_file("test", path, "old");
  const InputFile reader("read", path);
  write_file("test", path, "newer");
  CHECK(reader.read_text(1) == "old");
  CHECK(InputFile("read", path).read_text(1) == "newer");
}

TEST_CASE("a file that is mapped is replaced, or named with the reason", "[core]") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "x";
  write_file("test", path, "old");
  const auto mapped = InputFile("read", path).map();
  const bool replaces = replaces_mapped_files();
  if (replaces)
    write_file("test", path, "newer");
  else
    CHECK_THROWS_WITH(write_file("test", path, "newer"), Contains("has it open or mapped, perhaps this one"));
  CHECK(std::memcmp(mapped.get(), "old", 3) == 0);
  CHECK(InputFile("read", path).size() == (replaces ? 5 : 3));
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}
