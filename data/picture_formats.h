// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/tensor.h"

/// Decoders of the formats that read_image reads by a library. `bytes` are all of `file`.

namespace pleat::data {

/// Whether these bytes begin as a PNG file does.
bool is_png(std::span<const std::byte> bytes);
/// `indices`: places in a palette and small samples stay what they are.
Tensor decode_png(const InputFile& file, std::span<const std::byte> bytes, bool indices = false);

/// Whether these bytes begin as a JPEG file does.
inline bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} &&
         bytes[2] == std::byte{0xFF};
}
/// Throws FileError where Pleat was built without libjpeg.
Tensor decode_jpeg(const InputFile& file, std::span<const std::byte> bytes);

/// Throws FileError, with the remedy, when a picture of `bytes_a_pixel`, the file that is held beside it, and
/// rows of `row_bytes_a_pixel` take more memory than the file's limit.
void check_picture_memory(const InputFile& file, int64_t width, int64_t height, int64_t bytes_a_pixel,
                          int64_t row_bytes_a_pixel = 0);

}  // namespace pleat::data
