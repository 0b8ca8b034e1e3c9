#include "pleat/models/mobilenet.h"

#include <vector>

#include "pleat/models/inverted_residual.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/squeeze_excitation.h"

namespace pleat::models {
namespace {

/// Stages of MobileNetV2, of which `strides` are the strides: calls `add` for each block.
template <class F>
void each_block_v2(const std::vector<int64_t>& strides, const F& add) {
  struct Stage {
    int64_t expansion, out, blocks;
  };
  int64_t in = 32;
  auto stride = strides.begin();
  for (const Stage& stage : std::vector<Stage>{
           {1, 16, 1}, {6, 24, 2}, {6, 32, 3}, {6, 64, 4}, {6, 96, 3}, {6, 160, 3}, {6, 320, 1}}) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      add(InvertedResidual{in, in * stage.expansion, stage.out, 3, block == 0 ? *stride : 1, nn::ReLU6{}});
      in = stage.out;
    }
    ++stride;
  }
}

struct BlockV3 {
  int64_t kernel, inside, out, squeeze;  ///< channels of the excitation, or 0
  bool hardswish;
  int64_t stride;
};

nn::Sequential mobilenet_v3(const std::vector<BlockV3>& blocks, int64_t hidden, imagenet::Options options) {
  const auto conv = [](int64_t from, int64_t to, int64_t kernel, int64_t stride) {
    return conv_norm({from, to, kernel, stride, 1, false, 0.001, 0.01}, nn::Hardswish{});
  };
  int64_t in = 16;
  nn::Sequential features;
  features.add(conv(3, in, 3, 2));
  for (const BlockV3& b : blocks) {
    InvertedResidual block{in, b.inside, b.out, b.kernel, b.stride, nn::ReLU{}, {}, 0.001, 0.01};
    if (b.hardswish) block.activation = nn::Hardswish{};
    if (b.squeeze > 0)
      block.excitation = nn::SqueezeExcitation{
          {.input_channels = b.inside, .squeeze_channels = b.squeeze, .scale_activation = nn::Hardsigmoid{}}};
    features.add(published(block, Nested::all, "block"));
    in = b.out;
  }
  features.add(conv(in, 6 * in, 1, 1));
  return classifying(
      features, nn::Sequential{nn::Linear{{.in_features = 6 * in, .out_features = hidden}}, nn::Hardswish{},
                               nn::Dropout{{.p = 0.2}},
                               nn::Linear{{.in_features = hidden, .out_features = options.num_classes}}});
}

}  // namespace

nn::Sequential mobilenet_v2(ClassifierOptions options) {
  nn::Sequential net = conv_norm({options.in_channels, 32}, nn::ReLU6{});
  each_block_v2({1, 1, 2, 2, 1, 2, 1}, [&](const InvertedResidual& block) {
    const nn::Sequential layers = layers_of(block, Nested::none);
    block.keeps_shape() ? net.add(nn::Residual{{.body = layers}}) : net.add(layers);
  });
  add_conv_norm(net, {320, 1280, 1}, nn::ReLU6{});
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = 1280, .out_features = options.num_classes}});
  return net;
}

nn::Sequential imagenet::mobilenet_v2(Options options) {
  nn::Sequential features;
  features.add(conv_norm({3, 32, 3, 2}, nn::ReLU6{}));
  each_block_v2({1, 2, 2, 2, 1, 2, 1}, [&](const InvertedResidual& block) {
    features.add(published(block, Nested::activated, "conv"));
  });
  features.add(conv_norm({320, 1280, 1}, nn::ReLU6{}));
  return classifying(features,
                     nn::Sequential{nn::Dropout{{.p = 0.2}},
                                    nn::Linear{{.in_features = 1280, .out_features = options.num_classes}}});
}

nn::Sequential imagenet::mobilenet_v3_small(Options options) {
  return mobilenet_v3({{3, 16, 16, 8, false, 2},
                       {3, 72, 24, 0, false, 2},
                       {3, 88, 24, 0, false, 1},
                       {5, 96, 40, 24, true, 2},
                       {5, 240, 40, 64, true, 1},
                       {5, 240, 40, 64, true, 1},
                       {5, 120, 48, 32, true, 1},
                       {5, 144, 48, 40, true, 1},
                       {5, 288, 96, 72, true, 2},
                       {5, 576, 96, 144, true, 1},
                       {5, 576, 96, 144, true, 1}},
                      1024, options);
}

nn::Sequential imagenet::mobilenet_v3_large(Options options) {
  return mobilenet_v3({{3, 16, 16, 0, false, 1},
                       {3, 64, 24, 0, false, 2},
                       {3, 72, 24, 0, false, 1},
                       {5, 72, 40, 24, false, 2},
                       {5, 120, 40, 32, false, 1},
                       {5, 120, 40, 32, false, 1},
                       {3, 240, 80, 0, true, 2},
                       {3, 200, 80, 0, true, 1},
                       {3, 184, 80, 0, true, 1},
                       {3, 184, 80, 0, true, 1},
                       {3, 480, 112, 120, true, 1},
                       {3, 672, 112, 168, true, 1},
                       {5, 672, 160, 168, true, 2},
                       {5, 960, 160, 240, true, 1},
                       {5, 960, 160, 240, true, 1}},
                      1280, options);
}

}  // namespace pleat::models
