#pragma once

#include <array>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015) at update t = 1, 2 ...:
///
///   g += weight_decay * p
///   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)
///
/// With amsgrad, v in the last line is the largest v so far (Reddi et al., "On the convergence of
/// Adam and beyond", 2018).
class Adam : public OptimizerWith<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> params, AdamOptions options = {});
  explicit Adam(std::vector<Group> groups);

 protected:
  void check_options_of_group(const AdamOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t state) const override {
    return state < 2 || options(group).amsgrad;
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019):
/// p -= lr * weight_decay * p before the update, and none in the gradient.
class AdamW : public OptimizerWith<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Tensor> params, AdamWOptions options = {});
  explicit AdamW(std::vector<Group> groups);

 protected:
  void check_options_of_group(const AdamWOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t state) const override {
    return state < 2 || options(group).amsgrad;
  }
};

}  // namespace pleat::optim
