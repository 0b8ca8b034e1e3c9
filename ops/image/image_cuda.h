// Private header: not installed.
#pragma once

#include "pleat/ops/image/image.h"

namespace pleat::ops {

/// The work of image.h on a GPU: one launch each. x and y are row-major; everything is
/// checked.
void shift_images_cuda(const Tensor& x, std::span<const ImageShift> shifts, bool reflect, const Tensor& y);
void map_images_cuda(const Tensor& x, std::span<const ImageMap> maps, const ImageMapOptions& options,
                     const Tensor& y);
void erase_boxes_cuda(const Tensor& x, std::span<const ImageBox> boxes, const Tensor& y);
void mix_images_cuda(const Tensor& x, std::span<const ImageMix> mixes, const Tensor& y);
void adjust_colors_cuda(const Tensor& x, std::span<const ImageColors> colors, const Tensor& y);
/// `channels` numbers a factor and a summand each; `pixels` elements of x have one channel.
void scale_channels_cuda(const Tensor& x, std::span<const float> scale, std::span<const float> shift,
                         int64_t pixels, const Tensor& y);

}  // namespace pleat::ops
