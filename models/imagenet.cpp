#include "pleat/models/imagenet.h"

#include "pleat/models/convnext.h"
#include "pleat/models/densenet.h"
#include "pleat/models/efficientnet.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/named_networks.h"
#include "pleat/models/resnet.h"
#include "pleat/models/vgg.h"
#include "pleat/models/vision_transformer.h"

namespace pleat::models::imagenet {
namespace {

template <auto make>
nn::AnyModule any(Options options) {
  return nn::AnyModule(make(options));
}

using Classifier = NamedNetwork<nn::AnyModule (*)(Options)>;

const std::vector<Classifier>& classifiers() {
  static const auto& list = *new std::vector<Classifier>{{"resnet18", any<resnet18>},
                                                         {"resnet34", any<resnet34>},
                                                         {"resnet50", any<resnet50>},
                                                         {"mobilenet_v2", any<mobilenet_v2>},
                                                         {"mobilenet_v3_small", any<mobilenet_v3_small>},
                                                         {"mobilenet_v3_large", any<mobilenet_v3_large>},
                                                         {"efficientnet_b0", any<efficientnet_b0>},
                                                         {"convnext_tiny", any<convnext_tiny>},
                                                         {"densenet121", any<densenet121>},
                                                         {"vgg11_bn", any<vgg11_bn>},
                                                         {"vit_b_16", any<vit_b_16>}};
  return list;
}

}  // namespace

std::vector<double> channel_mean() { return {0.485, 0.456, 0.406}; }
std::vector<double> channel_std() { return {0.229, 0.224, 0.225}; }

const std::vector<std::string>& classifier_names() {
  static const auto& names = *new std::vector<std::string>(names_of(classifiers()));
  return names;
}

nn::AnyModule make_classifier(const std::string& name, Options options) {
  return find_network("imagenet::make_classifier", classifiers(), name)(options);
}

}  // namespace pleat::models::imagenet
