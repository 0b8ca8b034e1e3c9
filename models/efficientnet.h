#pragma once

#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models::imagenet {

/// EfficientNet-B0 (Tan and Le, arXiv:1905.11946) with stochastic depth: 5.3 million parameters.
nn::Sequential efficientnet_b0(Options options = {});

}  // namespace pleat::models::imagenet
