#pragma once

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< weight of the old running average
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< divide by the deviation instead of the root mean square
  bool maximize = false;
};

/// RMSprop (Hinton, "Neural networks for machine learning", lecture 6, 2012; centered: Graves,
/// arXiv:1308.0850):
///
///   g += weight_decay * p;  s = alpha * s + (1 - alpha) * g^2;  a = alpha * a + (1 - alpha) * g
///   d = g / (sqrt(centered ? s - a^2 : s) + eps)
///   b = momentum * b + d;  p -= lr * (momentum ? b : d)
class RMSprop : public OptimizerWith<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> params, RMSpropOptions options = {});
  explicit RMSprop(std::vector<Group> groups);

 protected:
  void check_options_of_group(const RMSpropOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t state) const override;
};

}  // namespace pleat::optim
