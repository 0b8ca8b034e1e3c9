// Private header: not installed.
#pragma once

#include <cstddef>
#include <span>

#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// Whether these bytes begin as a JPEG file does.
inline bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} &&
         bytes[2] == std::byte{0xFF};
}

/// The picture in `bytes`, all of `file`, as read_image gives it. Throws FileError where Pleat was built
/// without libjpeg.
Tensor decode_jpeg(const InputFile& file, std::span<const std::byte> bytes);

}  // namespace pleat::data
