#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// MobileNetV2 (Sandler et al., arXiv:1801.04381) with the strides that are usual for images of
/// 32 x 32 pixels: 2.2 million parameters.
nn::Sequential mobilenet_v2(ClassifierOptions options);

}  // namespace pleat::models
