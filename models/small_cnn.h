#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// Three times conv 3x3 (32, 64, 128 channels), batch norm, ReLU, 2x2 max-pool; then one linear
/// layer. Throws ValueError unless 8 divides image_size.
nn::Sequential small_cnn(ClassifierOptions options);

}  // namespace pleat::models
