#pragma once

#include <array>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;
};

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2):
///
///   c = beta1 * m + (1 - beta1) * g;  p -= lr * (sign(c) + weight_decay * p);  m = beta2 * m + (1 - beta2) *
///   g
class Lion : public OptimizerWith<LionOptions> {
 public:
  explicit Lion(std::vector<Tensor> params, LionOptions options = {});
  explicit Lion(std::vector<Group> groups);

 protected:
  void check_options_of_group(const LionOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
