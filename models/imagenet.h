#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/nn/containers.h"

/// Networks for ImageNet's pictures, [N, 3, 224, 224] to [N, num_classes]: the architectures, starting values
/// and names of parameters of torchvision 0.29, whose weights load as they are:
///
///   nn::Sequential net = models::imagenet::resnet50();
///   net.load_state_dict(io::read_safetensors("resnet50.safetensors").tensors);
///
/// scripts/torch_weights.py writes such a file (docs/from_pytorch.md). All but vit_b_16 take pictures of
/// other sizes, too. They throw ValueError unless num_classes is at least 1.

namespace pleat::models::imagenet {

struct Options {
  int64_t num_classes = 1000;
};

/// The mean of each channel of the training set, as a share of 255: for data::normalize.
std::vector<double> channel_mean();
/// The standard deviation.
std::vector<double> channel_std();
/// The names of the 1,000 classes, in the order of the results.
const std::vector<std::string>& class_names();

/// The names of the networks: "resnet18", "resnet34", "resnet50", "mobilenet_v2", "mobilenet_v3_small",
/// "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "densenet121", "vgg11_bn", "vit_b_16".
const std::vector<std::string>& classifier_names();
/// The network of that name. Throws ValueError for another name.
nn::AnyModule make_classifier(const std::string& name, Options options = {});

}  // namespace pleat::models::imagenet
