#pragma once

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};

/// Adagrad (Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning", 2011) at update t = 1,
/// 2 ...:
///
///   g += weight_decay * p;  s += g^2;  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
class Adagrad : public OptimizerWith<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions options = {});
  explicit Adagrad(std::vector<Group> groups);

 protected:
  void check_options_of_group(const AdagradOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
