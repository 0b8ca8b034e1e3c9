#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// MobileNetV2 (Sandler et al., arXiv:1801.04381) with the strides that are usual for images of
/// 32 x 32 pixels: 2.2 million parameters.
nn::Sequential mobilenet_v2(ClassifierOptions options);

namespace imagenet {

/// MobileNetV2: 3.5 million parameters.
nn::Sequential mobilenet_v2(Options options = {});
/// MobileNetV3, small (Howard et al., arXiv:1905.02244): 2.5 million parameters.
nn::Sequential mobilenet_v3_small(Options options = {});
/// MobileNetV3, large: 5.5 million parameters.
nn::Sequential mobilenet_v3_large(Options options = {});

}  // namespace imagenet
}  // namespace pleat::models
