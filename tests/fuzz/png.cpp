// PNG pictures: as they are, and with the checksums of their chunks put right, without which libpng refuses
// nearly every change.
#include <string_view>
#include <vector>

#include <zlib.h>

#include "pleat/tests/fuzz/picture.h"

namespace {

std::vector<uint8_t> with_checksums(const uint8_t* data, std::size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (std::size_t at = 8; at + 12 <= size;) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (length > size - at - 12) break;
    const auto crc = crc32(0, bytes.data() + at + 4, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      bytes[at + 8 + length + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  pleat::fuzz::read_picture(data, size);
  const std::vector<uint8_t> mended = with_checksums(data, size);
  pleat::fuzz::read_picture(mended.data(), mended.size());
  return 0;
}
