#pragma once

#include <cstdint>
#include <vector>

#include "pleat/data/loader.h"
#include "pleat/nn/module.h"

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
  /// [target][predicted]: how many.
  std::vector<std::vector<int64_t>> confusion() const;
  /// Share of right predictions for each class; NaN for one without samples.
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

}  // namespace pleat::train
