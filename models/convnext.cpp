#include "pleat/models/convnext.h"

#include <array>
#include <string>

#include "pleat/core/tensor/create.h"
#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::models {
namespace {

/// A layer norm over the channels of [N, C, H, W].
struct ChannelNorm : nn::LayerNorm {
  explicit ChannelNorm(int64_t channels) : LayerNorm{{.normalized_shape = channels, .eps = 1e-6}} {}

  Tensor forward(const Tensor& x) override {
    return permute(LayerNorm::forward(permute(x, {0, 2, 3, 1})), {0, 3, 1, 2});
  }
};
/// The same by the name "norm".
nn::Sequential named_norm(int64_t channels) { return nn::Sequential{{"norm", ChannelNorm(channels)}}; }

/// x + scale * (to four times as many channels and back, after a depthwise 7x7 convolution and a norm).
/// `published`: by the names of published weights.
struct Block : nn::Module {
  explicit Block(int64_t channels, bool published_ = false, double drop = 0)
      : published(published_),
        depthwise{{.in_channels = channels,
                   .out_channels = channels,
                   .kernel_size = 7,
                   .padding = 3,
                   .groups = channels}},
        scale(nn::parameter(full(published ? Shape{channels, 1, 1} : Shape{channels}, 1e-6, float32))),
        depth{{.p = drop}} {
    const auto add = [&](const nn::AnyModule& module) {
      channelwise.add(std::to_string(channelwise.size() + (published ? 2 : 0)), module);
    };
    add(nn::LayerNorm{{.normalized_shape = channels, .eps = 1e-6}});
    add(nn::Linear{{.in_features = channels, .out_features = 4 * channels}});
    add(nn::GELU{});
    add(nn::Linear{{.in_features = 4 * channels, .out_features = channels}});
  }

  Tensor forward(const Tensor& x) override {
    const Tensor y = channelwise(permute(depthwise(x), {0, 2, 3, 1})) * flatten(scale);
    return x + depth(permute(y, {0, 3, 1, 2}));
  }
  void members(nn::Members& m) override {
    m(published ? "block.0" : "depthwise", depthwise);
    m(published ? "block" : "channelwise", channelwise);
    m(published ? "layer_scale" : "scale", scale);
    m("stochastic_depth", depth);
  }

  bool published;
  nn::Conv2d depthwise;
  nn::Sequential channelwise;
  Tensor scale;
  nn::StochasticDepth depth;
};

nn::Conv2d shrinking(int64_t in, int64_t out, int64_t factor = 2) {
  return nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = factor, .stride = factor}};
}

struct Stage {
  int64_t channels, blocks;
};

}  // namespace

nn::Sequential convnext_atto(ClassifierOptions options) {
  constexpr std::array<Stage, 4> stages{{{40, 2}, {80, 2}, {160, 6}, {320, 2}}};
  nn::Sequential net{shrinking(options.in_channels, stages[0].channels), named_norm(stages[0].channels)};
  int64_t in = stages[0].channels;
  for (const Stage& stage : stages) {
    if (stage.channels != in) {
      net.add(named_norm(in));
      net.add(shrinking(in, stage.channels));
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

nn::Sequential imagenet::convnext_tiny(Options options) {
  constexpr std::array<Stage, 4> stages{{{96, 3}, {192, 3}, {384, 9}, {768, 3}}};
  int64_t in = stages[0].channels;
  nn::Sequential features;
  features.add(nn::Sequential{shrinking(3, in, 4), ChannelNorm(in)});
  int before = 0;  // blocks, of 18
  for (const Stage& stage : stages) {
    if (stage.channels != in) features.add(nn::Sequential{ChannelNorm(in), shrinking(in, stage.channels)});
    nn::Sequential blocks;
    for (int64_t i = 0; i < stage.blocks; ++i) blocks.add(Block(stage.channels, true, 0.1 * before++ / 17));
    features.add(blocks);
    in = stage.channels;
  }
  nn::Sequential net{
      {"features", features},
      {"avgpool", nn::AdaptiveAvgPool2d{{.output_size = 1}}},
      {"classifier", nn::Sequential{ChannelNorm(in), nn::Flatten{},
                                    nn::Linear{{.in_features = in, .out_features = options.num_classes}}}}};
  const auto weight = [](const Tensor& w) { nn::init::normal_(w, 0, 0.02); };
  start<nn::ConvModule>(net, weight);
  start<nn::Linear>(net, weight);
  return net;
}

}  // namespace pleat::models
