// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Points that are weighted sums of pixels: what grid_sample, roi_align and deformable convolutions read. The
/// three functions here are the derivatives of each other.

namespace pleat::ops {

/// For each of M maps and P points T pixels, row-major in their planes, and what they weigh. A pixel of
/// weight 0 plays no part, whatever it holds.
struct PixelTaps {
  Tensor index;       ///< int32 [M, T, P], all in the plane
  Tensor weight;      ///< [M, T, P], of the type in which the image's is computed
  Tensor image = {};  ///< int64 [M]: which image a map is of; undefined: map m of image m
};

/// Throws ShapeError where a plane has too many pixels for int32.
void check_plane(const char* op, const Tensor& x);

/// y[m, c, p] = sum over t of weight[m, t, p] x[image[m], c, index[m, t, p]] for floating x [N, C,
/// spatial...]: [M, C, points...] in x's memory format.
Tensor sampled_pixels(const char* op, const Tensor& x, const PixelTaps& taps, const Shape& points);
/// The adjoint in x: x's gradient, of this shape, from y's, in this format. Adds in the order of the taps.
Tensor sampled_pixels_input(const char* op, const Tensor& dy, const PixelTaps& taps, const Shape& shape,
                            MemoryFormat format);
/// The adjoint in the weights: [M, T, P] from y's gradient and x; the weights in `taps` are not read.
Tensor sampled_pixels_weight(const char* op, const Tensor& dy, const Tensor& x, const PixelTaps& taps);

}  // namespace pleat::ops
