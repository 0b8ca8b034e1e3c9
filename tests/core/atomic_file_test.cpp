#include "pleat/core/atomic_file.h"

#include <string>

#include <sys/stat.h>

#include "pleat/core/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

namespace {

std::string text_of(const std::filesystem::path& path) {
  const auto bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

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
  CHECK(text_of(path) == "first content");
  {
    AtomicFile file("test", path);
    file.write("second");
    CHECK(text_of(path) == "first content");
  }
  CHECK(text_of(path) == "first content");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("an atomic file keeps permissions and follows links", "[core]") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "elsewhere");
  const auto target = directory / "elsewhere" / "x";
  const unsigned char old[] = {'o'};
  write_bytes(target, old);
  std::filesystem::permissions(target, std::filesystem::perms(0640));
  std::filesystem::create_symlink(target, directory / "link");

  AtomicFile file("test", directory / "link");
  file.write("new");
  file.commit();
  CHECK(text_of(target) == "new");
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(std::filesystem::status(target).permissions() == std::filesystem::perms(0640));
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
  CHECK(message_of(missing) == "test: cannot write '" + missing.string() + "': No such file or directory");
  CHECK(message_of(directory.path()) == "test: '" + directory.path().string() + "' is not a regular file");
  // A rename would replace the device.
  CHECK(message_of("/dev/null") == "test: '/dev/null' is not a regular file");
}
