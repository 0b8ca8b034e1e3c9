#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// VGG configuration A with batch norm (Simonyan and Zisserman, arXiv:1409.1556), one linear layer
/// at its end: 9 million parameters. Throws ValueError unless 32 divides image_size.
nn::Sequential vgg11(ClassifierOptions options);

namespace imagenet {

/// The same with biases of the convolutions and three linear layers: 132.9 million parameters.
nn::Sequential vgg11_bn(Options options = {});

}  // namespace imagenet
}  // namespace pleat::models
