#pragma once

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};

/// Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012):
///
///   g += weight_decay * p;  v = rho * v + (1 - rho) * g^2;  d = sqrt(u + eps) / sqrt(v + eps) * g;
///   u = rho * u + (1 - rho) * d^2;  p -= lr * d
class Adadelta : public OptimizerWith<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Tensor> params, AdadeltaOptions options = {});
  explicit Adadelta(std::vector<Group> groups);

 protected:
  void check_options_of_group(const AdadeltaOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t, std::size_t) const override { return true; }
};

}  // namespace pleat::optim
