#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

struct UNetOptions {
  Required<int64_t> num_classes;
  int64_t in_channels = 3;
  /// Channels of the levels, each of half the size of the one before: at least two.
  std::vector<int64_t> widths = {32, 64, 128, 256};
};

/// U-Net (Ronneberger et al., arXiv:1505.04597) with padding and batch norm: a class for each pixel,
/// [N, in_channels, H, W] to [N, num_classes, H, W]. H and W are multiples of 2^(levels - 1), else
/// ShapeError. Throws ValueError for fewer than two widths.
nn::Sequential unet(UNetOptions options);

}  // namespace pleat::models
