#pragma once

#include <array>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct NAdamOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool maximize = false;
};

/// NAdam (Dozat, "Incorporating Nesterov momentum into Adam", 2016) at update t = 1, 2 ..., with mu(t) =
/// beta1 * (1 - 0.96^(t * momentum_decay) / 2) and M(t) = mu(1) mu(2) ... mu(t):
///
///   g += weight_decay * p;  m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
///   p -= lr * ((1 - mu(t)) / (1 - M(t)) * g + mu(t + 1) / (1 - M(t + 1)) * m) / (sqrt(v / (1 - beta2^t)) +
///   eps)
class NAdam : public OptimizerWith<NAdamOptions> {
 public:
  explicit NAdam(std::vector<Tensor> params, NAdamOptions options = {});
  explicit NAdam(std::vector<Group> groups);

 protected:
  void check_options_of_group(const NAdamOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
