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

/// ResNet of depth 18 (He et al., arXiv:1512.03385): 11.7 million parameters.
nn::Sequential resnet18(Options options = {});
/// Depth 34: 21.8 million parameters.
nn::Sequential resnet34(Options options = {});
/// Depth 50, blocks of three convolutions, of which the 3x3 ones have the strides: 25.6 million parameters.
nn::Sequential resnet50(Options options = {});

}  // namespace imagenet
}  // namespace pleat::models
