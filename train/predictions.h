#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "pleat/data/loader.h"
#include "pleat/nn/containers.h"
#include "pleat/train/metrics.h"

namespace pleat::train {

/// What a classifier says of one sample.
struct Prediction {
  int64_t sample;  ///< its place in the data set
  int64_t target;
  int64_t predicted;
  double probability;  ///< of the predicted class
  double loss;         ///< cross entropy
};

/// The predictions for the samples of a data set, in its order.
struct Predictions {
  int64_t classes = 0;
  std::vector<Prediction> samples;

  double loss() const;      ///< mean; 0 without samples
  double accuracy() const;  ///< share of right predictions; 0 without samples
  /// Which classes were taken for which: precision, recall, F1.
  ConfusionMatrix confusion() const;
  /// Share of right predictions for each class (its recall); NaN for one without samples.
  std::vector<double> class_accuracy() const;
  /// The wrong predictions with the largest loss, the largest first; at most `most`.
  std::vector<Prediction> worst(int64_t most) const;
};

/// Classifies an epoch of a loader, whose batches [N, ...] with targets [N] int64 must be on the network's
/// device; in evaluation mode and off the tape. Each prediction has its sample's number, also of a loader
/// that shuffles, or has a rank's share. Throws ShapeError unless the network gives [N, classes] for targets
/// [N], IndexError for a target outside [0, classes), ValueError for a loader that leaves out samples
/// (drop_last).
Predictions predict_classes(nn::Module& net, data::DataLoader& loader);

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
