// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/sample/pixel_taps.h"
#include "pleat/ops/sample/place_taps.h"

/// Points of images as weighted sums of pixels: what grid_sample, roi_align and deformable convolutions read.

namespace pleat {

/// ops::sampled_pixels, differentiable in x and the weights, to any order. The indices and images of the
/// taps must not be changed later.
Tensor weighted_pixels(const char* op, const Tensor& x, const ops::PixelTaps& taps, const Shape& points);

/// Floating x [N, C, spatial...] at places [M, P, dims] (ops/sample/place_taps.h) of the type in which x's is
/// computed:
/// [M, C, points...] in x's memory format, P being the number of points. `image` (int64 [M]) says which image
/// a map is of; undefined: map m of image m. It must not be changed later. Differentiable in x and the
/// places, to any order.
Tensor sample_points(const char* op, const Tensor& x, const Tensor& places, const ops::PlaceRule& rule,
                     const Shape& points, const Tensor& image = {});

}  // namespace pleat
