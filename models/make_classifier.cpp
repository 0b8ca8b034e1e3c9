#include "pleat/models/make_classifier.h"

#include "pleat/core/base/format.h"
#include "pleat/models/convnext.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/resnet.h"
#include "pleat/models/small_cnn.h"
#include "pleat/models/vgg.h"

namespace pleat::models {
namespace {

struct Classifier {
  std::string name;
  nn::Sequential (*make)(ClassifierOptions);
};

const std::vector<Classifier>& classifiers() {
  static const auto& list = *new std::vector<Classifier>{
      {"small", small_cnn}, {"resnet20", resnet20},         {"resnet18", resnet18},
      {"vgg11", vgg11},     {"mobilenet_v2", mobilenet_v2}, {"convnext_atto", convnext_atto}};
  return list;
}

}  // namespace

const std::vector<std::string>& classifier_names() {
  static const auto& names = *[] {
    auto* all = new std::vector<std::string>;
    for (const Classifier& one : classifiers()) all->push_back(one.name);
    return all;
  }();
  return names;
}

nn::Sequential make_classifier(const std::string& name, ClassifierOptions options) {
  for (const Classifier& one : classifiers())
    if (one.name == name) return one.make(options);
  std::string names;
  for (const std::string& known : classifier_names()) names += (names.empty() ? "" : ", ") + known;
  fail<ValueError>("make_classifier: there is no network \"{}\"; there are {}", name, names);
}

}  // namespace pleat::models
