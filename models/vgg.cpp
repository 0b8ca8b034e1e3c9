#include "pleat/models/vgg.h"

#include "pleat/core/base/format.h"
#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
nn::Sequential vgg11(ClassifierOptions options) {
  check<ValueError>(options.image_size >= 32 && options.image_size % 32 == 0,
                    "vgg11: image_size must be a multiple of 32, got {}", options.image_size);
  nn::Sequential net;
  int64_t in = options.in_channels;
  for (const int64_t out : {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}) {
    if (out == 0) {
      net.add(nn::MaxPool2d{{.kernel_size = 2}});
      continue;
    }
    add_conv_norm(net, {in, out});
    net.add(nn::ReLU{});
    in = out;
  }
  const int64_t side = options.image_size / 32;
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = count(Shape{in, side, side}), .out_features = options.num_classes}});
  return net;
}

}  // namespace pleat::models
