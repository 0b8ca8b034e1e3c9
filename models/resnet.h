#pragma once

#include "pleat/models/classifier_options.h"
#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// The residual network of depth 20 for CIFAR (He et al., arXiv:1512.03385, section 4.2), with 1x1
/// convolutions where a shortcut changes size: 0.27 million parameters.
nn::Sequential resnet20(ClassifierOptions options);

/// ResNet-18 with a 3x3 stem instead of 7x7 and pooling, as is usual for images of 32 x 32 pixels:
/// 11 million parameters.
nn::Sequential resnet18(ClassifierOptions options);

namespace imagenet {

/// ResNet (He et al., arXiv:1512.03385): 11.7, 21.8 and 25.6 million parameters. In resnet50 the 3x3
/// convolutions have the strides, not the 1x1 ones before them.
nn::Sequential resnet18(Options options = {});
nn::Sequential resnet34(Options options = {});
nn::Sequential resnet50(Options options = {});

}  // namespace imagenet
}  // namespace pleat::models
