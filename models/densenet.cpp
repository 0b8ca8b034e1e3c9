#include "pleat/models/densenet.h"

#include <string>
#include <vector>

#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/shape/join.h"

namespace pleat::models {
namespace {

/// What came before, and 32 channels that a 1x1 and a 3x3 convolution make of it, norms first.
struct DenseLayer : nn::Sequential {
  explicit DenseLayer(int64_t in) {
    const ConvNorm narrow{in, 128, 1};
    add("norm1", nn::BatchNorm2d{{.num_features = in}});
    add("relu1", nn::ReLU{});
    add("conv1", conv_of(narrow));
    add("norm2", norm_of(narrow));
    add("relu2", nn::ReLU{});
    add("conv2", conv_of({128, 32}));
  }
  Tensor forward(const Tensor& x) override { return cat({x, Sequential::forward(x)}, 1); }
};

}  // namespace

nn::Sequential imagenet::densenet121(Options options) {
  const ConvNorm stem{3, 64, 7, 2};
  nn::Sequential features{{"conv0", conv_of(stem)},
                          {"norm0", norm_of(stem)},
                          {"relu0", nn::ReLU{}},
                          {"pool0", nn::MaxPool2d{{.kernel_size = 3, .stride = 2, .padding = 1}}}};
  int64_t channels = 64, number = 0;
  for (const int64_t layers : {6, 12, 24, 16}) {
    if (number > 0) {
      features.add("transition" + std::to_string(number),
                   nn::Sequential{{"norm", nn::BatchNorm2d{{.num_features = channels}}},
                                  {"relu", nn::ReLU{}},
                                  {"conv", conv_of({channels, channels / 2, 1})},
                                  {"pool", nn::AvgPool2d{{.kernel_size = 2}}}});
      channels /= 2;
    }
    nn::Sequential block;
    for (int64_t i = 1; i <= layers; ++i, channels += 32)
      block.add("denselayer" + std::to_string(i), DenseLayer(channels));
    features.add("denseblock" + std::to_string(++number), block);
  }
  features.add("norm5", nn::BatchNorm2d{{.num_features = channels}});
  nn::Sequential net{
      {"features", features},
      {"relu", nn::ReLU{}},
      {"avgpool", nn::AdaptiveAvgPool2d{{.output_size = 1}}},
      {"flatten", nn::Flatten{}},
      {"classifier", nn::Linear{{.in_features = channels, .out_features = options.num_classes}}}};
  start_convolutions(net, "fan_in");
  nn::init::zeros_(net.get<nn::Linear>(-1).bias);
  return net;
}

}  // namespace pleat::models
