// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/problem.h"

/// Windows of images as matrices on a GPU, and back: what unfold, fold and the convolutions by matrix
/// products do.

namespace pleat::ops {

/// Output pixels [image, d, h, w].
struct PixelBox {
  std::array<int64_t, 4> first{}, size{};

  int64_t pixels() const { return size[1] * size[2] * size[3]; }  ///< of an image
  int64_t count() const { return size[0] * pixels(); }
};

/// Where matrices of windows have element [image, group, channel, tap, pixel], the pixels of an image being
/// those of a box in row-major order. Either taps and the channels of a group neighbour each other or pixels
/// do. The channels of a group are all taps of the one, then all of the next, but where `channel` is 1.
struct ColumnSteps {
  int64_t image, group, channel, tap, pixel;
};

/// columns = the windows of the images x [N, C, D, H, W], of any strides, that give the pixels of the box;
/// `columns` is the element of the first. `flipped`: the taps in reversed order.
void unfold_box(const char* op, const ConvProblem& p, const PixelBox& box, const Tensor& x,
                std::byte* columns, const ColumnSteps& steps, bool flipped = false);

/// Where images without gaps between their pixels have element [image, channel, pixel].
struct ImageSteps {
  int64_t image, channel, pixel;
};

/// images = for each element the sum over the taps, in order, of the windows in which it is at that tap. `p`
/// tells how many images and channels, and the windows.
void fold_columns(const char* op, const ConvProblem& p, const std::byte* columns, DType columns_type,
                  const ColumnSteps& steps, std::byte* images, DType images_type,
                  const ImageSteps& image_steps);

}  // namespace pleat::ops
