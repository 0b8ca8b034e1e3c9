#pragma once

#include "pleat/core/tensor/tensor.h"

/// Images read at places that are computed, as PyTorch's functions of these names. Jaderberg et al., "Spatial
/// transformer networks" (2015).

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

struct GridSampleOptions {
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outermost pixels, else their outer edges
};

/// x [N, C, H, W] or [N, C, D, H, W] at the places grid [N, out..., 2 or 3], whose last dimension is (x, y)
/// or (x, y, z) from -1 to 1 across the image: [N, C, out...], in x's memory format. A NaN in the grid gives
/// NaN. A composition of `gather` for each neighbour; half types are computed in float32. Differentiable in
/// both. Throws ShapeError (sizes that do not fit, an image without pixels), DTypeError unless both are of
/// one floating type, ValueError for cubic in three dimensions, DeviceError.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

/// The grid of an affine map theta [N, 2, 3] (or [N, 3, 4]) for results of size [N, C, H, W] ([N, C, D, H,
/// W]): [N, H, W, 2], theta (x, y, 1) for the centres of pixels. Throws ShapeError, DTypeError unless
/// floating.
Tensor affine_grid(const Tensor& theta, const Sizes& size, Flag align_corners = false);

}  // namespace pleat
