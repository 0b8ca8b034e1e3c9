#pragma once

#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models::imagenet {

/// DenseNet-121 (Huang et al., arXiv:1608.06993): 8.0 million parameters.
nn::Sequential densenet121(Options options = {});

}  // namespace pleat::models::imagenet
