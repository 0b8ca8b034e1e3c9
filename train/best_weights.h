#pragma once

#include <cstdint>

#include "pleat/core/base/required.h"
#include "pleat/nn/module.h"
#include "pleat/nn/state_dict.h"

namespace pleat::train {

struct BestWeightsOptions {
  Required<bool> maximize;  ///< whether the metric should rise, as an accuracy, or fall, as a loss
  double min_delta = 0;     ///< a change of at most so much is no improvement
  int64_t patience = 10;    ///< rows without improvement after which should_stop()
};

/// Keeps a copy of the weights with the best metric, and says when it has stopped improving.
///
///   train::BestWeights best{net, {.maximize = true, .patience = 5}};
///   for (int epoch = 0; epoch < epochs && !best.should_stop(); ++epoch) {
///     ...
///     best.update(test_accuracy);
///   }
///   best.restore();
class BestWeights {
 public:
  /// Refers to the network, which must stay where it is. Throws ValueError for options below 0.
  BestWeights(const nn::Module& net, BestWeightsOptions options);

  /// Whether the metric is the best so far; then the weights are copied. A NaN is no improvement.
  bool update(double metric);
  bool should_stop() const { return since_best_ > options_.patience; }
  /// The best metric. Throws Error before the first that is a number.
  double best() const;
  /// Gives the network the best weights. Throws Error when there are none yet.
  void restore();

  /// Metric, rows since, and the weights, for checkpoints.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  /// Shares the network's tensors: restore() copies into them.
  nn::StateDict own() const { return net_.state_dict(); }

  const nn::Module& net_;
  BestWeightsOptions options_;
  nn::StateDict weights_;  ///< empty: none yet
  double best_ = 0;
  int64_t since_best_ = 0;  ///< rows without improvement
};

}  // namespace pleat::train
