#pragma once

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct MuonOptions {
  double lr = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;  ///< iterations that make the update orthogonal
  double weight_decay = 0;
  bool maximize = false;
};

/// Momentum made orthogonal (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024),
/// weight decay decoupled:
///
///   b = momentum * b + g;  u = nesterov ? g + momentum * b : b
///   p -= lr * (weight_decay * p + sqrt(max(1, rows / columns)) * o)
///
/// where o is u as the matrix [out, other dimensions], its singular values pushed towards 1 by the
/// Newton-Schulz iteration X = u / |u|, X <- 3.4445 X - 4.775 (X X^T) X + 2.0315 (X X^T)^2 X. For
/// matrices and filters: throws ValueError for parameters of lower rank. Train biases, norms and
/// usually the first and the last layer by AdamW.
class Muon : public OptimizerWith<MuonOptions> {
 public:
  explicit Muon(std::vector<Tensor> params, MuonOptions options = {});
  explicit Muon(std::vector<Group> groups);

 protected:
  void check_options_of_group(const MuonOptions& o) const override;
  void check_parameter(const Tensor& param) const override;
  void update(std::span<const ParamStep> steps) override;

 private:
  void update_one(const ParamStep& step) const;
};

}  // namespace pleat::optim
