#pragma once

#include <cstdint>

#include "pleat/core/base/required.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

struct LeNetOptions {
  Required<int64_t> num_classes;
  int64_t in_channels = 1;
  int64_t image_size = 28;  ///< height and width
};

/// LeNet-5 (LeCun et al., 1998) with ReLU and max-pooling, for digits [N, 1, 28, 28]:
/// `lenet({.num_classes = 10})`. Throws ValueError unless image_size is a multiple of 4 above 8.
nn::Sequential lenet(LeNetOptions options);

}  // namespace pleat::models
