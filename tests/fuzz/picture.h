#pragma once

#include "pleat/data/image.h"
#include "pleat/data/resize.h"
#include "pleat/tests/fuzz/fuzz.h"

namespace pleat::fuzz {

/// Reads bytes as a picture, and makes another size of it.
inline void read_picture(const uint8_t* data, std::size_t size) {
  const InputAsFile file(data, size);
  Tensor picture;
  if (!accepts([&] { picture = data::read_image(file.path(), limited); })) return;
  require(picture.dtype() == uint8 && picture.rank() == 3, "picture: not [C, H, W] of bytes");
  require(picture.size(0) == 1 || picture.size(0) == 3, "picture: neither grey nor red, green and blue");
  if (picture.numel() > 1 << 16) return;
  require(data::resize_bilinear(picture, 3, 5).numel() == 15 * picture.size(0), "picture: resized wrongly");
}

}  // namespace pleat::fuzz
