#include "pleat/models/vgg.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/models/conv_norm.h"
#include "pleat/models/small_cnn.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
namespace {

constexpr std::array<int64_t, 13> vgg11_layers{64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};

/// Convolutions of these channels with batch norm and ReLU, and a pooling where they are 0.
nn::Sequential plain_layers(int64_t in, std::span<const int64_t> layers, bool bias) {
  nn::Sequential net;
  for (const int64_t out : layers) {
    if (out == 0) {
      net.add(nn::MaxPool2d{{.kernel_size = 2}});
      continue;
    }
    add_conv_norm(net, {.in = in, .out = out, .bias = bias}, nn::ReLU{});
    in = out;
  }
  return net;
}

/// The layers, and a linear one.
nn::Sequential plain_net(const char* name, std::span<const int64_t> layers,
                         const ClassifierOptions& options) {
  const int64_t shrunk = int64_t{1} << std::ranges::count(layers, 0), last = std::ranges::max(layers);
  check<ValueError>(options.image_size >= shrunk && options.image_size % shrunk == 0,
                    "{}: image_size must be a multiple of {}, got {}", name, shrunk, options.image_size);
  const int64_t side = options.image_size / shrunk;
  nn::Sequential net = plain_layers(options.in_channels, layers, false);
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = count(Shape{last, side, side}), .out_features = options.num_classes}});
  return net;
}

}  // namespace

nn::Sequential small_cnn(ClassifierOptions options) {
  return plain_net("small_cnn", std::array<int64_t, 6>{32, 0, 64, 0, 128, 0}, options);
}

nn::Sequential vgg11(ClassifierOptions options) { return plain_net("vgg11", vgg11_layers, options); }

nn::Sequential imagenet::vgg11_bn(Options options) {
  const auto linear = [](int64_t in, int64_t out) {
    return nn::Linear{{.in_features = in, .out_features = out}};
  };
  nn::Sequential net{
      {"features", plain_layers(3, vgg11_layers, true)},
      {"avgpool", nn::AdaptiveAvgPool2d{{.output_size = 7}}},
      {"flatten", nn::Flatten{}},
      {"classifier", nn::Sequential{linear(512 * 7 * 7, 4096), nn::ReLU{}, nn::Dropout{}, linear(4096, 4096),
                                    nn::ReLU{}, nn::Dropout{}, linear(4096, options.num_classes)}}};
  start_convolutions(net);
  start<nn::Linear>(net, [](const Tensor& w) { nn::init::normal_(w, 0, 0.01); });
  return net;
}

}  // namespace pleat::models
