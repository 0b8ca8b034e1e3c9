#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cifar_options.h"
#include <pleat/pleat.h>

/// What a run of train_cifar leaves in its folder: metrics.csv, options.toml, learning_curves.svg,
/// report.html, TensorBoard's events, the checkpoints, and the weights of the best epoch, which is the one
/// with the highest test accuracy, or of several the one with the lowest test loss. Nothing is written before
/// the first epoch or checkpoint: a run that fails before leaves an earlier run as it was.
class Results {
 public:
  /// `writes`: of several processes that train together only one does; the others have what they go on
  /// from, and may call nothing but start() and checkpoints(). Throws FileError.
  Results(const CifarSettings& s, bool writes);

  /// Has the checkpoints save and load the metrics, too, and goes on from the newest if the run is to
  /// resume. Throws UsageError when there is none.
  void start();
  pleat::train::Checkpoints& checkpoints() { return checkpoints_; }
  /// Saves a checkpoint; after an epoch with its test accuracy.
  void save(int64_t step, std::optional<double> accuracy = {});
  /// Adds the figures of an epoch, and saves the weights if it is the best.
  void add(int64_t epoch, const pleat::train::EpochResult& r, const pleat::train::Classifier& classifier);
  /// Writes report.html, for the weights of the best epoch. `tests` makes a loader of the test images
  /// for a classifier.
  void report(const pleat::data::TensorDataset& images,
              const std::function<pleat::data::DataLoader(const pleat::train::Classifier&)>& tests,
              pleat::Device device);
  /// Waits until all is on disk; says what there is and where.
  void conclude();

  /// Epochs since the best.
  int64_t epochs_since_best() const;

 private:
  void make_room();
  /// The row of the best epoch.
  std::size_t best() const;
  void draw() const;

  const CifarSettings& settings_;
  std::filesystem::path folder_;
  std::optional<pleat::train::RunFolder> own_folder_;
  pleat::train::MetricLog log_;
  pleat::train::Checkpoints checkpoints_;
  std::optional<pleat::train::TensorBoard> board_;
  bool made_room_ = false;
};
