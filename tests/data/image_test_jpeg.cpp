// JPEG pictures, where libjpeg was found.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
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
using Catch::Matchers::Contains;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes jpeg(const std::string& name) {
  for (const Json& file : fixture_cases("files", "jpeg"))
    if (file.at("name") == name) return file_bytes(file);
  return {};
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

// Where a segment of this kind begins.
std::size_t find_marker(const Bytes& bytes, unsigned char kind) {
  for (std::size_t i = 2; i + 1 < bytes.size(); ++i)
    if (bytes[i] == 0xFF && bytes[i + 1] == kind) return i;
  FAIL("no such marker");
  return 0;
}

}  // namespace

TEST_CASE("JPEG: what Pillow decodes is what is read", "[data][jpeg]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.jpg";
  for (const Json& file : fixture_cases("files", "jpeg")) {
    INFO(file.at("name"));
    write_bytes(path, file_bytes(file));
    const Tensor image = read_image(path);
    const Tensor expected = tensor_from(file.at("arrays").at("image"));
    REQUIRE(image.shape() == expected.shape());
    const auto got = image.to_vector<int>(), wanted = expected.to_vector<int>();
    // Versions of libjpeg-turbo differ in the last bit where colours are enlarged.
    int worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - wanted[i]));
    CHECK(worst <= 2);
  }
}

TEST_CASE("JPEG: a file that breaks off is refused", "[data][jpeg]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.jpg";
  for (const char* name : {"444", "420", "progressive", "gray", "cmyk"}) {
    INFO(name);
    const Bytes whole = jpeg(name);
    for (std::size_t length = 3; length + 2 < whole.size(); length += 7) {
      write_bytes(path, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
      CHECK_THAT(message_of([&] { read_image(path); }), Contains("x.jpg', byte ") && Contains("JPEG: "));
    }
    // What cameras append is no part of the picture.
    Bytes longer = whole;
    longer.insert(longer.end(), 100, 'x');
    write_bytes(path, longer);
    CHECK_NOTHROW(read_image(path));
  }
}

TEST_CASE("JPEG: damaged pictures load or are refused", "[data][jpeg]") {
  const TemporaryDirectory folder;
  for (const char* name : {"420", "progressive", "gray", "cmyk"}) {
    INFO(name);
    const auto report = damage(
        jpeg(name), folder / "damaged", 1500,
        [](const auto& path) { read_image(path, {.memory_limit = 16 << 20}); }, false);
    CHECK(report.refused > 300);
    CHECK(report.loaded > 0);
  }
}

TEST_CASE("JPEG: sizes are checked before memory is taken", "[data][jpeg]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.jpg";
  for (const auto& [name, frame] :
       {std::pair<std::string, unsigned char>{"420", 0xC0}, {"progressive", 0xC2}}) {
    Bytes bytes = jpeg(name);
    const std::size_t at = find_marker(bytes, frame);
    for (std::size_t i = 5; i < 9; ++i) bytes[at + i] = i % 2 == 1 ? 0xEA : 0x60;  // 60,000 x 60,000
    write_bytes(path, bytes);
    reset_peak_statistics();
    const int64_t before = allocator_statistics().peak;
    CHECK_THAT(message_of([&] { read_image(path); }), Contains("pixels cannot come from a file of"));
    // A file that is large enough to hold it is above the limit.
    bytes.resize(20'000'000, 'x');
    for (std::size_t i = 5; i < 9; ++i) bytes[at + i] = i % 2 == 1 ? 0x75 : 0x30;  // 30,000 x 30,000
    write_bytes(path, bytes);
    CHECK_THAT(message_of([&] { read_image(path, {.memory_limit = 256 << 20}); }),
               Contains("a picture of 30000 x 30000 pixels takes") && Contains(".memory_limit = "));
    CHECK(allocator_statistics().peak == before);
  }
}

TEST_CASE("JPEG: an image folder has them beside PNG", "[data][jpeg]") {
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "a");
  write_bytes(folder / "a" / "1.JPG", jpeg("444"));
  write_bytes(folder / "a" / "2.jpeg", jpeg("gray"));
  write_bytes(folder / "a" / "3.jpg", jpeg("cmyk"));
  write_bytes(folder / "a" / "4.png", file_bytes(fixture_case("files", "rgb.png")));
  const ImageFolder pictures(folder.path(), {.resize = 8, .crop = 8});
  REQUIRE(pictures.size() == 4);
  CHECK(pictures.skipped().empty());
  CHECK(pictures.get(std::array<int64_t, 4>{0, 1, 2, 3}).inputs.shape() == Shape{4, 3, 8, 8});
}
