// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// A dense picture [C, H, W] uint8 in another size. Bilinear; where the picture becomes smaller the
/// filter is as wide as a new pixel (antialias). Rounds to bytes between the two directions, so the
/// result has the same bits as Pillow's resize and torchvision's Resize of a Pillow picture.
/// (Pillow 13 begins with the columns where that is less work, which changes last bits.)
Tensor resize_bilinear(const Tensor& image, int64_t height, int64_t width);

/// The part of a picture [C, H, W] uint8 from (top, left) on; it must lie inside.
Tensor crop_picture(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width);

}  // namespace pleat::data
