#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "pleat/nn/containers.h"

namespace pleat::train {

/// Pictures [..., W] from left to right, the first of the versions of TestTimeAugmentation.
Tensor mirrored(const Tensor& pictures);

/// Test-time augmentation: a classifier whose class probabilities are the means over several versions of its
/// input (Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012, section
/// 4.1). It takes the network's place wherever a classifier is tested, used or exported:
///
///   train::TestTimeAugmentation net{trained};                    // the picture and its mirror image
///   train::TestTimeAugmentation net{trained, {shifted, darker}}; // and functions of one's own
///   train::predict_classes(net, loader);
///
/// Its result is the logarithm of the mean probabilities, [N, classes], whose softmax they are.
class TestTimeAugmentation : public nn::Module {
 public:
  /// `versions` are functions of a batch of inputs that keep its shape; the batch as it is always counts,
  /// too. Throws ValueError for an empty one.
  explicit TestTimeAugmentation(nn::AnyModule net,
                                std::vector<std::function<Tensor(const Tensor&)>> versions = {mirrored});
  /// `TestTimeAugmentation{net}` would copy a net that is one.
  TestTimeAugmentation(std::initializer_list<TestTimeAugmentation>) = delete;

  /// Throws ShapeError unless the network gives [N, classes].
  Tensor forward(const Tensor& x) override;
  void members(nn::Members& m) override { m("net", net_); }
  std::string type_name() const override { return "TestTimeAugmentation"; }

 private:
  nn::AnyModule net_;
  std::vector<std::function<Tensor(const Tensor&)>> versions_;
};

}  // namespace pleat::train
