#pragma once

#include <cstdint>

#include "pleat/core/base/required.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

struct VoxelNetOptions {
  Required<int64_t> num_classes;
  int64_t in_channels = 1;
};

/// Classifies volumes [N, in_channels, D, H, W] of any size from 8 voxels a side: three times conv
/// 3x3x3 (16, 32, 64 channels), batch norm, ReLU, 2x2x2 max-pool; then a linear layer on the mean.
nn::Sequential voxel_net(VoxelNetOptions options);

}  // namespace pleat::models
