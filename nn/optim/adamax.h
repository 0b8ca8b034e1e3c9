#pragma once

#include <array>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct AdamaxOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
};

/// Adamax (Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 2) at update t = 1, 2
/// ...:
///
///   g += weight_decay * p;  m = beta1 * m + (1 - beta1) * g;  u = max(beta2 * u, |g| + eps);
///   p -= lr / (1 - beta1^t) * m / u
class Adamax : public OptimizerWith<AdamaxOptions> {
 public:
  explicit Adamax(std::vector<Tensor> params, AdamaxOptions options = {});
  explicit Adamax(std::vector<Group> groups);

 protected:
  void check_options_of_group(const AdamaxOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
