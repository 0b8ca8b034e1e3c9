#include "pleat/models/mobilenet.h"

#include <vector>

#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
namespace {

/// To `expansion` times as many channels, a depthwise convolution there, and back.
nn::AnyModule inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expansion) {
  nn::Sequential body;
  const int64_t inside = in * expansion;
  if (expansion > 1) {
    add_conv_norm(body, {in, inside, 1});
    body.add(nn::ReLU6{});
  }
  add_conv_norm(body, {inside, inside, 3, stride, inside});
  body.add(nn::ReLU6{});
  add_conv_norm(body, {inside, out, 1});
  if (stride == 1 && in == out) return nn::Residual{{.body = body}};
  return body;
}

}  // namespace

nn::Sequential mobilenet_v2(ClassifierOptions options) {
  struct Stage {
    int64_t expansion, out, blocks, stride;
  };
  nn::Sequential net;
  add_conv_norm(net, {options.in_channels, 32});
  net.add(nn::ReLU6{});
  int64_t in = 32;
  for (const Stage& stage : std::vector<Stage>{{1, 16, 1, 1},
                                               {6, 24, 2, 1},
                                               {6, 32, 3, 2},
                                               {6, 64, 4, 2},
                                               {6, 96, 3, 1},
                                               {6, 160, 3, 2},
                                               {6, 320, 1, 1}})
    for (int64_t block = 0; block < stage.blocks; ++block) {
      net.add(inverted_residual(in, stage.out, block == 0 ? stage.stride : 1, stage.expansion));
      in = stage.out;
    }
  add_conv_norm(net, {in, 1280, 1});
  net.add(nn::ReLU6{});
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = 1280, .out_features = options.num_classes}});
  return net;
}

}  // namespace pleat::models
