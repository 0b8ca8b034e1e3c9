#include "pleat/models/lenet.h"

#include "pleat/core/base/format.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {
nn::Sequential lenet(LeNetOptions options) {
  const int64_t size = options.image_size;
  check<ValueError>(size > 8 && size % 4 == 0, "lenet: image_size must be a multiple of 4 above 8, got {}",
                    size);
  const int64_t side = (size / 2 - 4) / 2;
  return nn::Sequential{
      nn::Conv2d{{.in_channels = options.in_channels, .out_channels = 6, .kernel_size = 5, .padding = 2}},
      nn::ReLU{},
      nn::MaxPool2d{{.kernel_size = 2}},
      nn::Conv2d{{.in_channels = 6, .out_channels = 16, .kernel_size = 5}},
      nn::ReLU{},
      nn::MaxPool2d{{.kernel_size = 2}},
      nn::Flatten{},
      nn::Linear{{.in_features = count(Shape{16, side, side}), .out_features = 120}},
      nn::ReLU{},
      nn::Linear{{.in_features = 120, .out_features = 84}},
      nn::ReLU{},
      nn::Linear{{.in_features = 84, .out_features = options.num_classes}}};
}

}  // namespace pleat::models
