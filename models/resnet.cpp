#include "pleat/models/resnet.h"

#include <vector>

#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
namespace {

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride = 1) {
  return nn::Conv2d{{.in_channels = in,
                     .out_channels = out,
                     .kernel_size = 3,
                     .stride = stride,
                     .padding = 1,
                     .bias = false}};
}

/// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the size changes.
nn::Residual basic_block(int64_t in, int64_t out, int64_t stride) {
  nn::Sequential body{conv3x3(in, out, stride), nn::BatchNorm2d{{.num_features = out}}, nn::ReLU{},
                      conv3x3(out, out), nn::BatchNorm2d{{.num_features = out}}};
  if (stride == 1 && in == out) return nn::Residual{{.body = body, .activation = nn::ReLU{}}};
  nn::Sequential shortcut{
      nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = 1, .stride = stride, .bias = false}},
      nn::BatchNorm2d{{.num_features = out}}};
  return nn::Residual{{.body = body, .shortcut = shortcut, .activation = nn::ReLU{}}};
}

/// A stem, then stages of `blocks` basic blocks, each but the first of half the size; then a linear layer on
/// the mean.
nn::Sequential resnet(const std::vector<int64_t>& widths, int blocks, const ClassifierOptions& options) {
  nn::Sequential net{conv3x3(options.in_channels, widths[0]), nn::BatchNorm2d{{.num_features = widths[0]}},
                     nn::ReLU{}};
  int64_t in = widths[0];
  for (const int64_t width : widths)
    for (int block = 0; block < blocks; ++block) {
      net.add(basic_block(in, width, block == 0 && width != widths[0] ? 2 : 1));
      in = width;
    }
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = options.num_classes}});
  return net;
}

}  // namespace

nn::Sequential resnet20(ClassifierOptions options) { return resnet({16, 32, 64}, 3, options); }
nn::Sequential resnet18(ClassifierOptions options) { return resnet({64, 128, 256, 512}, 2, options); }

}  // namespace pleat::models
