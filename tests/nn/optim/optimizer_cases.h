#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pleat/nn/optim/muon.h"
#include "pleat/nn/optim/rules.h"

/// Every optimiser, in the configurations that its formula has branches for. A row here is all that an
/// optimiser needs for the tests of its formula, of gradient scalers, and of GPUs (one, two, against the
/// CPU).

namespace pleat::test {

using Params = std::vector<Tensor>;

/// Calls `f.template operator()<Optimizer, Options>(name)` for every optimiser of the library.
template <class F>
void for_each_optimizer(const F& f) {
  const auto of_rules = [&]<class... Rules>(optim::RuleList<Rules...>) {
    (f.template operator()<optim::RuleOptimizer<typename Rules::Options>, typename Rules::Options>(
         Rules::name),
     ...);
  };
  of_rules(optim::AllRules());
  f.template operator()<optim::Muon, optim::MuonOptions>("Muon");
}

/// An optimiser's options where all have their defaults, but for a rate that has none.
template <class Options>
Options default_options() {
  if constexpr (std::is_default_constructible_v<Options>)
    return {};
  else
    return {.lr = 0.1};
}

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

/// Of every optimiser.
std::vector<OptimizerOption> optimizer_options();

}  // namespace pleat::test
