#include "pleat/models/voxel_net.h"

#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
nn::Sequential voxel_net(VoxelNetOptions options) {
  nn::Sequential net;
  int64_t in = options.in_channels;
  for (const int64_t out : {16, 32, 64}) {
    net.add(
        nn::Conv3d{{.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1, .bias = false}});
    net.add(nn::BatchNorm3d{{.num_features = out}});
    net.add(nn::ReLU{});
    net.add(nn::MaxPool3d{{.kernel_size = 2}});
    in = out;
  }
  net.add(nn::AdaptiveAvgPool3d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = options.num_classes}});
  return net;
}

}  // namespace pleat::models
