#pragma once

#include <string>
#include <vector>

#include "pleat/models/classifier_options.h"
#include "pleat/nn/containers.h"

namespace pleat::models {

/// The names of the networks that classify images: "small", "resnet20", "resnet18", "vgg11",
/// "mobilenet_v2", "convnext_atto".
const std::vector<std::string>& classifier_names();
/// The network of that name. Throws ValueError for another name.
nn::Sequential make_classifier(const std::string& name, ClassifierOptions options);

}  // namespace pleat::models
