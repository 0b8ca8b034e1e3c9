// POSIX: links are only for some users of Windows
#include <array>
#include <map>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/data/image.h"
#include "pleat/data/image_folder.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/damage.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using namespace pleat::test;
using namespace pleat_test;

namespace {

void add_picture(const std::filesystem::path& path, const std::string& fixture_name) {
  std::filesystem::create_directories(path.parent_path());
  write_bytes(path, file_bytes(fixture_case("files", fixture_name)));
}

}  // namespace

TEST_CASE("an image folder follows links, and none of them for ever", "[data]") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const fs::path root = directory / "set", other = directory / "other";
  add_picture(root / "cat" / "1.png", "rgb.png");
  add_picture(other / "birds" / "2.png", "rgb.png");
  add_picture(other / "more" / "3.png", "rgb.png");
  fs::create_directory_symlink(other / "birds", root / "bird");
  fs::create_directory_symlink(other / "more", root / "cat" / "a");
  fs::create_directory_symlink(other / "more", root / "cat" / "b");
  fs::create_directory_symlink(root, root / "cat" / "c");
  fs::create_directory_symlink(".", other / "birds" / "d");
  fs::create_symlink(other / "more" / "3.png", root / "cat" / "4.png");
  fs::create_symlink("5.png", root / "cat" / "5.png");
  fs::create_symlink("nowhere", root / "cat" / "6.png");
  const ImageFolder folder(root);
  CHECK(folder.class_names() == std::vector<std::string>{"bird", "cat"});
  std::map<std::string, std::string> skipped;
  for (const ImageFolder::Skipped& file : folder.skipped())
    skipped[file.path.lexically_relative(root)] = file.reason;
  const std::string again = "it leads to a folder that is read already", none = "it is not a regular file";
  CHECK(skipped ==
        std::map<std::string, std::string>{
            {"bird/d", again}, {"cat/b", again}, {"cat/c", again}, {"cat/5.png", none}, {"cat/6.png", none}});
  REQUIRE(folder.size() == 4);
  CHECK(folder.path(0) == root / "bird" / "2.png");
  CHECK(folder.path(1) == root / "cat" / "1.png");
  CHECK(folder.path(2) == root / "cat" / "4.png");
  CHECK(folder.path(3) == root / "cat" / "a" / "3.png");
  CHECK(folder.get(std::vector<int64_t>{0, 1, 2, 3}).inputs.size(0) == 4);
}
