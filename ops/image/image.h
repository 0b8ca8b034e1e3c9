#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "pleat/core/tensor/tensor.h"

/// What augmentation does to batches of images [B, C, H, W] of uint8 or float32, given what was drawn for
/// each image. The results are row-major tensors of their own, on the device of the images: the few numbers
/// for each image go there from the host, and nothing waits. Throws ShapeError for other shapes and for as
/// many numbers as there are no images, DTypeError for other types.

namespace pleat::ops {

/// First moved, then mirrored.
struct ImageShift {
  int64_t down = 0;   ///< rows: pixel h shows what was at h + down
  int64_t right = 0;  ///< columns: pixel w shows what was at w + right
  bool mirror_columns = false;
  bool mirror_rows = false;
};

/// What comes in from outside is 0, or with `reflect` the image mirrored at its border rows, for which
/// distances must be smaller than height and width (ShapeError).
Tensor shift_images(const Tensor& x, std::span<const ImageShift> shifts, bool reflect = false);

/// The place in an image, in pixels from the centre of its first one, that pixel (h, w) of a result shows:
/// row[0] h + row[1] w + row[2], and the same of columns.
struct ImageMap {
  std::array<float, 3> row{1, 0, 0};
  std::array<float, 3> column{0, 1, 0};
};
struct ImageMapOptions {
  int64_t height, width;     ///< of the result
  bool repeat_edge = false;  ///< what lies outside is the nearest pixel, else 0
  bool nearest = false;      ///< a pixel is the nearest one, not a mean of four
};

/// [B, C, height, width], bilinear or nearest; bytes are rounded. Throws ValueError for numbers that are not
/// finite and for sizes that no tensor has.
Tensor map_images(const Tensor& x, std::span<const ImageMap> maps, const ImageMapOptions& options);

/// Rows top ... bottom-1 and columns left ... right-1; what lies outside of an image counts for nothing.
struct ImageBox {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};

/// 0 in the box of each image, in all channels.
Tensor erase_boxes(const Tensor& x, std::span<const ImageBox> boxes);

/// Of float32 only: share * x + (1 - share) * partner, and the partner alone inside the box.
struct ImageMix {
  int64_t partner = 0;  ///< place of the other image in the batch
  float share = 1;
  ImageBox box = {};
};
/// Throws IndexError for a partner outside of the batch, ValueError for a share outside [0, 1].
Tensor mix_images(const Tensor& x, std::span<const ImageMix> mixes);

/// Factors by which colours change; 1 leaves them.
struct ImageColors {
  float brightness = 1;
  float contrast = 1;    ///< of the distance from the image's mean grey
  float saturation = 1;  ///< of the distance from the pixel's own grey (ITU-R BT.601)
};
/// Of float32 and three channels, red, green and blue; the results lie in [0, 1].
Tensor adjust_colors(const Tensor& x, std::span<const ImageColors> colors);

/// Channel c as float32: x * scale[c] + shift[c]. x is [B, C, ...] with as many channels as there are
/// numbers.
Tensor scale_channels(const Tensor& x, std::span<const float> scale, std::span<const float> shift);

}  // namespace pleat::ops
