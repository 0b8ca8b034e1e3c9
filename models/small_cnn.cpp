#include "pleat/models/small_cnn.h"

#include "pleat/core/base/format.h"
#include "pleat/models/conv_norm.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
nn::Sequential small_cnn(ClassifierOptions options) {
  check<ValueError>(options.image_size >= 8 && options.image_size % 8 == 0,
                    "small_cnn: image_size must be a multiple of 8, got {}", options.image_size);
  nn::Sequential net;
  int64_t in = options.in_channels;
  for (const int64_t out : {32, 64, 128}) {
    add_conv_norm(net, {in, out});
    net.add(nn::ReLU{});
    net.add(nn::MaxPool2d{{.kernel_size = 2}});
    in = out;
  }
  const int64_t side = options.image_size / 8;
  net.add(nn::Flatten{});
  net.add(nn::Linear{{.in_features = count(Shape{in, side, side}), .out_features = options.num_classes}});
  return net;
}

}  // namespace pleat::models
