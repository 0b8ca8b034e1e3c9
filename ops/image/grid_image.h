// Private header: not installed.
#pragma once

#include "pleat/ops/image/image.h"

namespace pleat::ops {

/// The work of image.h over the grid of the device: one launch each. x and y are row-major; everything is
/// checked.
void grid_shift_images(const Tensor& x, std::span<const ImageShift> shifts, bool reflect, const Tensor& y);
void grid_erase_boxes(const Tensor& x, std::span<const ImageBox> boxes, const Tensor& y);
void grid_mix_images(const Tensor& x, std::span<const ImageMix> mixes, const Tensor& y);
void grid_adjust_colors(const Tensor& x, std::span<const ImageColors> colors, const Tensor& y);
/// `channels` numbers a factor and a summand each; `pixels` elements of x have one channel.
void grid_scale_channels(const Tensor& x, std::span<const float> scale, std::span<const float> shift,
                         int64_t pixels, const Tensor& y);

}  // namespace pleat::ops
