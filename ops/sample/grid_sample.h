#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/sample/grid_mode.h"

/// Images read at places that are computed, as PyTorch's functions of these names. Jaderberg et al., "Spatial
/// transformer networks" (2015).

namespace pleat {

struct GridSampleOptions {
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outermost pixels, else their outer edges
};

/// x [N, C, H, W] or [N, C, D, H, W] at the places grid [N, out..., 2 or 3], whose last dimension is (x, y)
/// or (x, y, z) from -1 to 1 across the image: [N, C, out...], in x's memory format. A NaN in the grid gives
/// NaN; a pixel that weighs 0 plays no part. Half types are computed in float32. Differentiable in both.
/// Throws ShapeError (sizes that do not fit, an image without pixels or with 2^31), DTypeError unless both
/// are of one floating type, ValueError for cubic in three dimensions, DeviceError.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

/// The grid of an affine map theta [N, 2, 3] (or [N, 3, 4]) for results of size [N, C, H, W] ([N, C, D, H,
/// W]): [N, H, W, 2], theta (x, y, 1) for the centres of pixels. Throws ShapeError, also for an image
/// without channels or pixels, DTypeError unless floating.
Tensor affine_grid(const Tensor& theta, const Sizes& size, Flag align_corners = false);

}  // namespace pleat
