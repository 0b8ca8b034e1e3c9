#pragma once

#include <cstdint>

#include "pleat/core/base/required.h"

namespace pleat::models {

/// Options of the networks that classify images [N, in_channels, H, W] and return [N, num_classes].
struct ClassifierOptions {
  Required<int64_t> num_classes;
  int64_t in_channels = 3;
  /// Height and width, a multiple of the number by which the network shrinks images. Only networks
  /// whose last layer sees every pixel depend on it (small_cnn, vgg11); others take any size.
  int64_t image_size = 32;
};

}  // namespace pleat::models
