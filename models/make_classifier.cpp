#include "pleat/models/make_classifier.h"

#include "pleat/models/convnext.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/named_networks.h"
#include "pleat/models/resnet.h"
#include "pleat/models/small_cnn.h"
#include "pleat/models/vgg.h"

namespace pleat::models {
namespace {

using Classifier = NamedNetwork<nn::Sequential (*)(ClassifierOptions)>;

const std::vector<Classifier>& classifiers() {
  static const auto& list = *new std::vector<Classifier>{
      {"small", small_cnn}, {"resnet20", resnet20},         {"resnet18", resnet18},
      {"vgg11", vgg11},     {"mobilenet_v2", mobilenet_v2}, {"convnext_atto", convnext_atto}};
  return list;
}

}  // namespace

const std::vector<std::string>& classifier_names() {
  static const auto& names = *new std::vector<std::string>(names_of(classifiers()));
  return names;
}

nn::Sequential make_classifier(const std::string& name, ClassifierOptions options) {
  return find_network("make_classifier", classifiers(), name)(options);
}

}  // namespace pleat::models
