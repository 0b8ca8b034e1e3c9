#include "pleat/models/convnext.h"

#include <array>

#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::models {
namespace {

/// A layer norm over the channels of [N, C, H, W].
struct ChannelNorm : nn::Module {
  explicit ChannelNorm(int64_t channels) : norm{{.normalized_shape = channels, .eps = 1e-6}} {}

  Tensor forward(const Tensor& x) override { return permute(norm(permute(x, {0, 2, 3, 1})), {0, 3, 1, 2}); }
  void members(nn::Members& m) override { m("norm", norm); }

  nn::LayerNorm norm;
};

/// x + scale * (to four times as many channels and back, after a depthwise 7x7 convolution and a norm).
struct Block : nn::Module {
  explicit Block(int64_t channels)
      : depthwise{{.in_channels = channels,
                   .out_channels = channels,
                   .kernel_size = 7,
                   .padding = 3,
                   .groups = channels}},
        channelwise{nn::LayerNorm{{.normalized_shape = channels, .eps = 1e-6}},
                    nn::Linear{{.in_features = channels, .out_features = 4 * channels}}, nn::GELU{},
                    nn::Linear{{.in_features = 4 * channels, .out_features = channels}}},
        scale(nn::parameter(full({channels}, 1e-6, float32))) {}

  Tensor forward(const Tensor& x) override {
    const Tensor y = channelwise(permute(depthwise(x), {0, 2, 3, 1})) * scale;
    return x + permute(y, {0, 3, 1, 2});
  }
  void members(nn::Members& m) override {
    m("depthwise", depthwise);
    m("channelwise", channelwise);
    m("scale", scale);
  }

  nn::Conv2d depthwise;
  nn::Sequential channelwise;
  Tensor scale;
};

nn::Conv2d halving(int64_t in, int64_t out) {
  return nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = 2, .stride = 2}};
}

}  // namespace

nn::Sequential convnext_atto(ClassifierOptions options) {
  struct Stage {
    int64_t channels, blocks;
  };
  constexpr std::array<Stage, 4> stages{{{40, 2}, {80, 2}, {160, 6}, {320, 2}}};
  nn::Sequential net{halving(options.in_channels, stages[0].channels), ChannelNorm(stages[0].channels)};
  int64_t in = stages[0].channels;
  for (const Stage& stage : stages) {
    if (stage.channels != in) {
      net.add(ChannelNorm(in));
      net.add(halving(in, stage.channels));
    }
    for (int64_t block = 0; block < stage.blocks; ++block) net.add(Block(stage.channels));
    in = stage.channels;
  }
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::LayerNorm{{.normalized_shape = in, .eps = 1e-6}});
  net.add(nn::Linear{{.in_features = in, .out_features = options.num_classes}});
  return net;
}

}  // namespace pleat::models
