#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pleat/nn/optim/optimizer.h"

/// Every optimiser, in the configurations that its formula has branches for. A row here is all that an
/// optimiser needs for the tests of its formula, of gradient scalers, and of GPUs (one, two, against the
/// CPU).

namespace pleat::test {

using Params = std::vector<Tensor>;

/// What the tests choose.
struct OptimizerScale {
  double lr;
  double eps = 1e-8;  ///< of optimisers that divide; 0 makes the GPU's rounding the CPU's
};

/// One element's update by the formula in the optimiser's doc comment, in float64.
struct ElementUpdate {
  double p;  ///< the parameter
  double g;  ///< its gradient
  double t;  ///< 1, 2 ...
  double lr, eps;
  std::span<double> state;  ///< four numbers, 0 at first; the formula uses them as it likes
};

struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(const Params&, OptimizerScale)> make;
  /// The new value of the parameter. Empty where an update takes more than one element.
  std::function<double(const ElementUpdate&)> formula;
};

const std::vector<OptimizerCase>& optimizer_cases();

/// An option, values that are refused by its name, and values that are taken.
struct OptimizerOption {
  std::string optimizer, name;
  std::vector<double> refused, taken;
  std::function<void(double)> use;
};

const std::vector<OptimizerOption>& optimizer_options();

}  // namespace pleat::test
