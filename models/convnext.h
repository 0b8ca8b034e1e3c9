#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// ConvNeXt (Liu et al., arXiv:2201.03545) of the size "atto" (blocks 2, 2, 6, 2; channels 40, 80,
/// 160, 320), with a stem of stride 2 for images of 32 x 32 pixels, and without stochastic depth:
/// 3.4 million parameters.
nn::Sequential convnext_atto(ClassifierOptions options);

namespace imagenet {

/// ConvNeXt-T with stochastic depth: 28.6 million parameters.
nn::Sequential convnext_tiny(Options options = {});

}  // namespace imagenet

}  // namespace pleat::models
