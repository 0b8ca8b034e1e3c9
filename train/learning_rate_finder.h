#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pleat/nn/module.h"
#include "pleat/nn/optim/optimizer.h"

namespace pleat::train {

struct LearningRateFinderOptions {
  double from = 1e-7;
  double to = 10;
  int64_t steps = 100;
  double smoothing = 0.95;  ///< of the exponential mean of losses
  double stop_at = 4;       ///< the search ends where the mean loss is above so many times the least
};

struct LearningRates {
  std::vector<double> rates;
  std::vector<double> losses;  ///< the smoothed loss at each rate
  /// Where the smoothed loss falls most steeply over the logarithm of the rate, before it is least: a
  /// usual choice for the highest rate of a training. 0 where it never falls.
  double suggestion = 0;

  /// The curve as SVG.
  std::string plot() const;
};

/// Trains with rates that rise exponentially (Smith, arXiv:1506.01186, section 3.3). `step` makes one
/// step of training with the optimiser and returns its loss. Network and optimiser are afterwards as
/// before. Throws ValueError for invalid options, NumericError when the first loss is not finite.
LearningRates find_learning_rate(nn::Module& net, optim::Optimizer& optimizer,
                                 const std::function<double()>& step,
                                 const LearningRateFinderOptions& options = {});

}  // namespace pleat::train
