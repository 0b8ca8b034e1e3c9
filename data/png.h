// Private header: not installed.
#pragma once

#include <cstddef>
#include <span>

#include "pleat/core/files/input_file.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// Whether these bytes begin as a PNG file does.
bool is_png(std::span<const std::byte> bytes);

/// The picture in `bytes`, all of `file`, as read_image gives it.
Tensor decode_png(const InputFile& file, std::span<const std::byte> bytes);

}  // namespace pleat::data
