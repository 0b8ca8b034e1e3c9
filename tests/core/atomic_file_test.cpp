#include "pleat/core/files/atomic_file.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

namespace {

std::ptrdiff_t files_in(const TemporaryDirectory& directory) {
  return std::distance(std::filesystem::directory_iterator(directory.path()), {});
}

}  // namespace

TEST_CASE("an atomic file appears as a whole or not at all", "[core]") {
  const TemporaryDirectory directory;
  const auto path = directory / "x";
  {
    AtomicFile file("test", path);
    file.write("new");
    CHECK_FALSE(std::filesystem::exists(path));
  }
  CHECK(files_in(directory) == 0);
  {
    AtomicFile file("test", path);
    file.write("first ");
    file.write("content");
    file.commit();
  }
  CHECK(read_text(path) == "first content");
  {
    AtomicFile file("test", path);
    file.write("second");
    CHECK(read_text(path) == "first content");
  }
  CHECK(read_text(path) == "first content");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("an atomic file that cannot be is an error with its path", "[core]") {
  const TemporaryDirectory directory;
  const auto message_of = [](const std::filesystem::path& path) {
    try {
      AtomicFile file("test", path);
      file.write("x");
      file.commit();
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto missing = directory / "none" / "x";
  CHECK(message_of(missing) == "test: cannot write '" + missing.string() +
                                   "': No such file or directory; make the folder '" +
                                   missing.parent_path().string() + "' first");
  CHECK(message_of(directory.path()) ==
        "test: '" + directory.path().string() + "' is a folder, not a regular file");
  CHECK(message_of("") == "test: a file's name must not be empty");
  CHECK_THAT(message_of(directory / std::string(300, 'x')),
             Catch::Matchers::StartsWith("test: cannot write"));
  CHECK(files_in(directory) == 0);
}

TEST_CASE("an atomic file is appended to after it came to its place", "[core]") {
  const TemporaryDirectory directory;
  AtomicFile file("test", directory / "x");
  file.write("a");
  file.commit();
  CHECK(read_text(directory / "x") == "a");
  file.write("b");
  CHECK(read_text(directory / "x") == "ab");
  file.commit();
  CHECK(read_text(directory / "x") == "ab");
}

TEST_CASE("many writers of one file do not take each other's", "[core]") {
  const TemporaryDirectory directory;
  std::vector<std::thread> writers;
  std::atomic<int> failures = 0;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      try {
        for (int i = 0; i < 50; ++i)
          write_file("test", directory / "x", std::string(1000, static_cast<char>('a' + w)));
      } catch (const Error&) {
        ++failures;
      }
    });
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == 0);
  CHECK(files_in(directory) == 1);
  const std::string text = read_text(directory / "x");
  CHECK(text == std::string(1000, text.at(0)));
}
