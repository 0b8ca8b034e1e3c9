#include <functional>
#include <string>
#include <vector>

#include <zlib.h>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/data/image.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using data::read_image;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;

namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(const std::string& kind, const std::string& data, int64_t promised = -1) {
  const std::string body = kind + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(promised < 0 ? static_cast<uint32_t>(data.size()) : static_cast<uint32_t>(promised)) +
         body + big_endian(static_cast<uint32_t>(crc));
}

std::string compressed(const std::string& data) {
  const auto bytes = static_cast<uLong>(data.size());
  uLongf size = compressBound(bytes);
  std::vector<Bytef> out(size);
  REQUIRE(compress2(out.data(), &size, reinterpret_cast<const Bytef*>(data.data()), bytes, 9) == Z_OK);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

// Grey, eight bits.
std::string png_start(uint32_t width, uint32_t height, char interlaced = 0) {
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(width) + big_endian(height) + '\x08' + std::string(3, '\0') + interlaced);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("PNG: no chunk takes the memory that its length promises", "[data][cpu]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.png";
  for (const char* kind : {"tEXt", "zTXt", "iTXt", "iCCP", "eXIf", "PLTE", "sPLT", "abCd", "IDAT"}) {
    INFO(kind);
    const std::string bytes = png_start(1, 1) + chunk(kind, "key", 0x7fffffff);
    REQUIRE(bytes.size() < 100);
    write_bytes(path, bytes);
    const int64_t before = pleat_test::peak_memory_kb();
    CHECK_THAT(message_of([&] { read_image(path); }), Contains(path.string()));
    CHECK(pleat_test::peak_memory_kb() - before < 100'000);
  }
}

TEST_CASE("PNG: what is said beside the pixels is skipped", "[data][cpu]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.png";
  // A profile of 50 MB in 50 KB.
  const std::string bomb = compressed(std::string(50'000'000, '\0'));
  write_bytes(path, png_start(2, 1) + chunk("iCCP", std::string("name\0\0", 6) + bomb) +
                        chunk("zTXt", std::string("key\0\0", 5) + bomb) +
                        chunk("IDAT", compressed(std::string("\0\x07\x09", 3))) + chunk("IEND", ""));
  const int64_t before = pleat_test::peak_memory_kb();
  CHECK(read_image(path).to_vector<int>() == std::vector<int>{7, 9});
  CHECK(pleat_test::peak_memory_kb() - before < 40'000);
}

TEST_CASE("pictures: sizes are checked before memory is taken", "[data]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x";
  // As much as deflate can pack: 30,000 x 30,000 of zeros in a megabyte.
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += std::string(30'001, '\0');
  std::string pixels = rows;
  while (pixels.size() < 60'000'000) pixels += rows;
  struct Example {
    std::string bytes;
    std::string part;
  };
  for (const Example& example :
       {Example{png_start(30'000, 30'000) + chunk("IDAT", compressed(pixels) + std::string(1'000'000, 'x')),
                ".memory_limit = 9"},
        Example{
            png_start(30'000, 30'000, 1) + chunk("IDAT", compressed(pixels) + std::string(1'000'000, 'x')),
            ".memory_limit = 18"},
        Example{png_start(30'000, 30'000) + chunk("IDAT", "xx"), "cannot come from a file of"},
        Example{png_start(0x7fffffff, 0x7fffffff) + chunk("IDAT", "xx"), "cannot come from a file of"},
        Example{png_start(0x7fffffff, 1) + chunk("IDAT", "xx"), "cannot come from a file of"},
        Example{"P5 30000 30000 255 xx", "truncated"}}) {
    write_bytes(path, example.bytes);
    reset_peak_statistics();
    const int64_t tensors = allocator_statistics().peak, before = pleat_test::peak_memory_kb();
    CHECK_THAT(message_of([&] { read_image(path); }), Contains(example.part) && Contains(path.string()));
    CHECK(allocator_statistics().peak == tensors);
    CHECK(pleat_test::peak_memory_kb() - before < 100'000);
  }
}

TEST_CASE("pictures have a memory limit", "[data]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x";
  for (const char interlaced : {'\0', '\1'}) {
    const std::string bytes =
        png_start(10, 10, interlaced) + chunk("IDAT", compressed(std::string(150, '\0'))) + chunk("IEND", "");
    write_bytes(path, bytes);
    const auto size = static_cast<int64_t>(bytes.size()) + 320 + (interlaced != 0 ? 200 : 100);
    CHECK_THAT(message_of([&] { read_image(path, {.memory_limit = size - 1}); }),
               Contains("a picture of 10 x 10 pixels takes"));
    if (interlaced == 0) CHECK(read_image(path, {.memory_limit = size}).numel() == 100);
  }
  write_bytes(path, "P5 2 2 255 abcd");
  CHECK_THAT(message_of([&] { read_image(path, {.memory_limit = 18}); }), Contains("{.memory_limit = 19}"));
  CHECK(read_image(path, {.memory_limit = 19}).numel() == 4);
  CHECK_THAT(message_of([&] { read_image(path, {.memory_limit = 10}); }), Contains("the file itself takes"));
}
