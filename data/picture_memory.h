// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/files/input_file.h"

namespace pleat::data {

/// Throws FileError, with the remedy, when a picture of `bytes_a_pixel`, the file that is held beside it, and
/// rows of `row_bytes_a_pixel` take more memory than the file's limit.
void check_picture_memory(const InputFile& file, int64_t width, int64_t height, int64_t bytes_a_pixel,
                          int64_t row_bytes_a_pixel = 0);

}  // namespace pleat::data
