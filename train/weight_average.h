#pragma once

#include <cstdint>
#include <optional>

#include "pleat/data/loader.h"
#include "pleat/nn/module.h"
#include "pleat/nn/state_dict.h"

namespace pleat::train {

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

}  // namespace pleat::train
