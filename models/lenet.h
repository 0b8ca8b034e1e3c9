#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// LeNet-5 (LeCun et al., 1998) with ReLU and max-pooling, for digits [N, 1, 28, 28]:
/// `lenet({.num_classes = 10, .in_channels = 1, .image_size = 28})`. Throws ValueError unless
/// image_size is a multiple of 4 above 8.
nn::Sequential lenet(ClassifierOptions options);

}  // namespace pleat::models
