#pragma once

#include <filesystem>

#include "pleat/core/tensor.h"

namespace pleat::data {

/// Reads a picture as [C, H, W] uint8, with one channel for grey pictures and three (red, green, blue) for
/// all others.
///
/// PNG of every kind and PGM/PPM (P2, P3, P5, P6), told apart by their content. Samples of other depths are
/// scaled to 0-255, palettes are looked up, transparency is dropped. Throws FileError naming file, offset and
/// cause: neither of these formats, damaged, too short, or with bytes left over.
Tensor read_image(const std::filesystem::path& path);

}  // namespace pleat::data
