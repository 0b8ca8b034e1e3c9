#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pleat/data/dataset.h"
#include "pleat/train/layer_times.h"
#include "pleat/train/metric_log.h"
#include "pleat/train/predictions.h"
#include "pleat/train/saved_classifier.h"

namespace pleat::train {

/// What a report of a training shows. Parts that are empty are left out.
struct ClassifierReport {
  std::string title;
  std::string command = {};  ///< that repeats the run
  std::vector<std::pair<std::string, std::string>> options = {};
  /// Rows an epoch, with "epoch" and any of "train_loss", "test_loss", "train_accuracy", "test_accuracy",
  /// "learning_rate".
  const MetricLog* log = nullptr;
  Predictions predictions = {};                 ///< for `images`
  const data::TensorDataset* images = nullptr;  ///< uint8 [N, 1 or 3, H, W]
  std::vector<LayerTimes> layers = {};
};

/// Writes one self-contained HTML file: learning curves, accuracy by class, the confusion matrix, the
/// worst mistakes with their pictures, the filters of the first layer, the layers with the time of each
/// implementation of their convolutions, options, versions and machine. Throws FileError.
void write_report(const std::filesystem::path& file, const Classifier& classifier,
                  const ClassifierReport& report);

}  // namespace pleat::train
