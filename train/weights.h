#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/data/loader.h"
#include "pleat/nn/module.h"
#include "pleat/nn/state_dict.h"

/// What is done with a network's weights beside training them: averages, the best of a run, transfer.

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

struct WeightAverageOptions {
  /// Of an exponential moving average: a = decay a + (1 - decay) w. None: the plain mean of all
  /// weights that were added, as of stochastic weight averaging.
  std::optional<double> decay = {};
  /// The first decays are smaller, at most (1 + n) / (10 + n) after n updates, so that the first
  /// weights are forgotten.
  bool warm_up = true;
};

/// Averages of a network's weights over the steps of a training (EMA; Polyak and Juditsky, 1992) or
/// over the epochs of its end (SWA; Izmailov et al., arXiv:1803.05407), which often classify better
/// than the last weights.
///
///   train::WeightAverage average{net, {.decay = 0.999}};
///   ... adam.step(); average.update();
///   {
///     train::WeightAverage::Use use(average);
///     evaluate(net);  // with the averages
///   }
///
/// Floating parameters and buffers are averaged in float32 or wider; others are those of the last
/// update. The statistics of batch norms that an SWA averages hold for none of its parts: compute
/// them anew by update_batch_norm.
class WeightAverage {
 public:
  /// Refers to the network, which must stay where it is. The average begins with its weights, which
  /// count as no update. Throws ValueError unless 0 <= decay < 1.
  explicit WeightAverage(nn::Module& net, WeightAverageOptions options = {});

  /// Adds the present weights. Throws Error while a Use exists.
  void update();
  int64_t updates() const { return updates_; }
  /// The averages by the names of the network's state dictionary.
  const nn::StateDict& weights() const { return average_; }

  /// In its scope the network has the averages; at the end its own weights again.
  class Use {
   public:
    /// Throws Error when there is one already.
    explicit Use(WeightAverage& average);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    WeightAverage& average_;
    nn::StateDict own_;
  };

  /// The averages, and "updates", for checkpoints.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  nn::Module& net_;
  WeightAverageOptions options_;
  nn::StateDict average_;
  int64_t updates_ = 0;
  bool in_use_ = false;
};

/// Computes the running statistics of all batch norms anew: the plain mean over the batches of an
/// epoch of the loader, which must give them on the network's device. The network is in training
/// mode meanwhile, and in its mode before afterwards.
void update_batch_norm(nn::Module& net, data::DataLoader& loader);

struct TransferOptions {
  /// Beginnings of names in the state and what they become: {{"backbone.", "body."}}. The first that
  /// fits is used; "" fits all names.
  std::vector<std::pair<std::string, std::string>> rename = {};
};

/// What became of each tensor, by the network's names; those that it does not have by the state's.
struct TransferReport {
  std::vector<std::string> copied;
  std::vector<std::string> other_shape;  ///< "head.weight: [10, 64] in the network, [1000, 64] in the state"
  std::vector<std::string> missing;      ///< of the network, but not in the state
  std::vector<std::string> unexpected;   ///< in the state, but not of the network

  /// For each kind how many, with the names of those that were not copied, one a line.
  std::string text() const;
};

/// Copies the tensors whose name and shape the network has, as for fine-tuning: a new head keeps its
/// first weights. Types are converted. Throws ValueError when nothing fits, or when two names become
/// one.
TransferReport transfer(nn::Module& net, const nn::StateDict& state, const TransferOptions& options = {});

}  // namespace pleat::train
