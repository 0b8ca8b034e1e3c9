#pragma once

#include <array>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct RAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
};

/// RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2020, algorithm 2) at
/// update t = 1, 2 ..., with r = 2 / (1 - beta2) - 1 and s = r - 2 t beta2^t / (1 - beta2^t):
///
///   g += weight_decay * p;  m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
///   p -= lr * m / (1 - beta1^t) * a
///
/// where a = sqrt((s - 4)(s - 2) r / ((r - 4)(r - 2) s)) * sqrt(1 - beta2^t) / (sqrt(v) + eps) if s > 5,
/// else 1.
class RAdam : public OptimizerWith<RAdamOptions> {
 public:
  explicit RAdam(std::vector<Tensor> params, RAdamOptions options = {});
  explicit RAdam(std::vector<Group> groups);

 protected:
  void check_options_of_group(const RAdamOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
