#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pleat/pleat.h>

/// Networks for images of 32 x 32 pixels and three channels.

/// Three times conv 3x3 (32, 64, 128 channels), batch norm, ReLU, 2x2 max-pool; then one linear layer.
pleat::nn::Sequential small_cnn(int64_t classes);

/// The residual network of depth 20 for CIFAR (He et al., arXiv:1512.03385, section 4.2), with 1x1
/// convolutions where a shortcut changes size.
pleat::nn::Sequential resnet20(int64_t classes);

/// ResNet-18 with a 3x3 stem instead of 7x7 and pooling, as is usual for 32 x 32 pixels.
pleat::nn::Sequential resnet18(int64_t classes);

/// VGG configuration A with batch norm (Simonyan and Zisserman, arXiv:1409.1556), one linear layer at its
/// end.
pleat::nn::Sequential vgg11(int64_t classes);

/// The names that `make_model` takes.
const std::vector<std::string>& model_names();
/// Throws ValueError for another name.
pleat::nn::Sequential make_model(const std::string& name, int64_t classes);
