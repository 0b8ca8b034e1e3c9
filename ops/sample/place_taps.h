// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/sample/grid_mode.h"

/// Which pixels a place in an image is made of.

namespace pleat::ops {

/// How places are read.
struct PlaceRule {
  std::vector<int64_t> sizes;  ///< of the image's spatial dimensions, two or three
  GridMode mode;
  GridPadding padding;
  bool align_corners = false;  ///< of places from -1 to 1
  bool in_pixels = false;      ///< places are in pixels, not from -1 to 1
};

struct PlaceTaps {
  Tensor index;   ///< int32 [M, T, P]
  Tensor weight;  ///< [M, T, P]; 0 beyond the image
};

/// Of contiguous places [M, P, dims] of float32 or float64, whose last dimension is (x, y) or (x, y, z).
PlaceTaps place_taps(const char* op, const Tensor& places, const PlaceRule& rule);
/// The gradient of the places from that of the weights.
Tensor place_taps_backward(const char* op, const Tensor& dweight, const Tensor& places,
                           const PlaceRule& rule);

}  // namespace pleat::ops
