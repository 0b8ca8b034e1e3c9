#include "pleat/models/vgg.h"

#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/models/conv_norm.h"
#include "pleat/models/small_cnn.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
namespace {

/// Convolutions of these channels, a pooling where they are 0, and a linear layer.
nn::Sequential plain_net(const char* name, const std::vector<int64_t>& layers,
                         const ClassifierOptions& options) {
  nn::Sequential net;
  int64_t in = options.in_channels, shrunk = 1;
  for (const int64_t out : layers) {
    if (out == 0) {
      net.add(nn::MaxPool2d{{.kernel_size = 2}});
      shrunk *= 2;
      continue;
    }
    add_conv_norm(net, {in, out});
    net.add(nn::ReLU{});
    in = out;
  }
  check<ValueError>(options.image_size >= shrunk && options.image_size % shrunk == 0,
                    "{}: image_size must be a multiple of {}, got {}", name, shrunk, options.image_size);
  const int64_t side = options.image_size / shrunk;
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = count(Shape{in, side, side}), .out_features = options.num_classes}});
  return net;
}

}  // namespace

nn::Sequential small_cnn(ClassifierOptions options) {
  return plain_net("small_cnn", {32, 0, 64, 0, 128, 0}, options);
}

nn::Sequential vgg11(ClassifierOptions options) {
  return plain_net("vgg11", {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}, options);
}

}  // namespace pleat::models
