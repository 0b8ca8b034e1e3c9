// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// A picture [C, H, W] uint8, dense, in another size: bilinear, with the filter as wide as a new pixel where
/// the picture becomes smaller (antialias). Rounds to bytes between the two directions: bit for bit what
/// Pillow's resize gives, and torchvision's Resize of a Pillow picture with it. (Pillow 13 begins with the
/// columns where that is less work, which changes last bits.)
Tensor resize_bilinear(const Tensor& image, int64_t height, int64_t width);

/// The part of a picture [C, H, W] uint8 from (top, left) on; it must lie inside.
Tensor crop_picture(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width);

}  // namespace pleat::data
