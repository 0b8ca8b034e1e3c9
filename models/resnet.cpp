#include "pleat/models/resnet.h"

#include <array>
#include <string>
#include <vector>

#include "pleat/models/conv_norm.h"
#include "pleat/models/named_residual.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
namespace {

/// Convolutions, with ReLU between them, beside a shortcut, which is a 1x1 convolution where the size
/// changes. `published`: by the names "conv1", "bn1" ... instead of numbers.
nn::AnyModule residual(const std::vector<ConvNorm>& convs, bool published = false) {
  nn::Sequential body;
  const auto add = [&](const char* name, std::size_t i, const nn::AnyModule& module) {
    published ? body.add(name + std::to_string(i + 1), module) : body.add(module);
  };
  int64_t stride = 1;
  for (std::size_t i = 0; i < convs.size(); ++i) {
    add("conv", i, conv_of(convs[i]));
    add("bn", i, norm_of(convs[i]));
    if (i + 1 < convs.size()) add("relu", i, nn::ReLU{});
    stride *= convs[i].stride;
  }
  nn::ResidualOptions options{.body = body, .activation = nn::ReLU{}};
  const int64_t in = convs.front().in, out = convs.back().out;
  if (stride > 1 || in != out) options.shortcut = conv_norm({in, out, 1, stride});
  if (published) return NamedResidual(options);
  return nn::Residual(options);
}

/// A stem, then stages of `blocks` basic blocks, each but the first of half the size; then a linear layer on
/// the mean.
nn::Sequential resnet(const std::vector<int64_t>& widths, int blocks, const ClassifierOptions& options) {
  nn::Sequential net = conv_norm({options.in_channels, widths[0]}, nn::ReLU{});
  int64_t in = widths[0];
  for (const int64_t width : widths)
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = block == 0 && width != widths[0] ? 2 : 1;
      net.add(residual({{in, width, 3, stride}, {width, width}}));
      in = width;
    }
  net.add(nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = in, .out_features = options.num_classes}});
  return net;
}

/// The same for large pictures, of blocks with two convolutions or, as `bottlenecks`, three.
nn::Sequential resnet(const std::array<int64_t, 4>& blocks, bool bottlenecks, imagenet::Options options) {
  const ConvNorm stem{3, 64, 7, 2};
  nn::Sequential net{{"conv1", conv_of(stem)},
                     {"bn1", norm_of(stem)},
                     {"relu", nn::ReLU{}},
                     {"maxpool", nn::MaxPool2d{{.kernel_size = 3, .stride = 2, .padding = 1}}}};
  int64_t in = 64, width = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2) {
    nn::Sequential layer;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      std::vector<ConvNorm> convs{{in, width, 3, stride}, {width, width}};
      if (bottlenecks) convs = {{in, width, 1}, {width, width, 3, stride}, {width, 4 * width, 1}};
      layer.add(residual(convs, true));
      in = convs.back().out;
    }
    net.add("layer" + std::to_string(stage + 1), layer);
  }
  net.add("avgpool", nn::AdaptiveAvgPool2d{{.output_size = 1}});
  net.add("flatten", nn::Flatten{});
  net.add("fc", nn::Linear{{.in_features = in, .out_features = options.num_classes}});
  start_convolutions(net);
  return net;
}

}  // namespace

nn::Sequential resnet20(ClassifierOptions options) { return resnet({16, 32, 64}, 3, options); }
nn::Sequential resnet18(ClassifierOptions options) { return resnet({64, 128, 256, 512}, 2, options); }

nn::Sequential imagenet::resnet18(Options options) { return resnet({2, 2, 2, 2}, false, options); }
nn::Sequential imagenet::resnet34(Options options) { return resnet({3, 4, 6, 3}, false, options); }
nn::Sequential imagenet::resnet50(Options options) { return resnet({3, 4, 6, 3}, true, options); }

}  // namespace pleat::models
