#pragma once

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"

/// Regions of images as images of one size: He et al., "Mask R-CNN" (2017).

namespace pleat {

struct RoiAlignOptions {
  Required<PerDim> output_size;  ///< bins of a box along height and width
  double spatial_scale = 1;      ///< pixels of x for each unit of the boxes, as 1 / 16 of x at stride 16
  /// Samples along each side of a bin, up to 1024; 0: as many as a bin has pixels, rounded up.
  int64_t sampling_ratio = 0;
  /// Coordinates are those of pixels' corners, by half a pixel below those of their centres. False: of
  /// centres, and boxes are at least a pixel wide, as in the first implementations.
  bool aligned = false;
};

/// The boxes [K, 5] of x [N, C, H, W]: [K, C, output_size...], in x's memory format. A row of `boxes`, of any
/// floating type, is (image, x1, y1, x2, y2). Each of output_size bins of a box is the mean of samples that
/// lie evenly in it, between pixels bilinear; within a pixel of the image that of its edge, beyond it 0. As
/// torchvision's function of this name. Half types are computed in float32. Differentiable in x, not in the
/// boxes. The host reads the boxes; on a GPU it waits for them. Throws ShapeError, DTypeError, ValueError for
/// options outside their ranges and boxes that are not finite or lie 2^30 pixels away, IndexError for a box
/// of an image that is not there.
Tensor roi_align(const Tensor& x, const Tensor& boxes, const RoiAlignOptions& options);

}  // namespace pleat
