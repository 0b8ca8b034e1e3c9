#pragma once

/// How images are read between and beyond their pixels.

namespace pleat {

enum class GridMode : unsigned char {
  nearest,  ///< the nearest pixel, of two the one with the even index; no gradient of the grid
  linear,   ///< bilinear or trilinear
  cubic     ///< bicubic, a = -0.75; of two spatial dimensions
};
enum class GridPadding : unsigned char {
  zeros,      ///< pixels beyond the image are 0
  border,     ///< the nearest pixel of the image
  reflection  ///< reflected at the image's edges (align_corners: at the centres of its outermost pixels)
};

}  // namespace pleat
