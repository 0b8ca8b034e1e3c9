#pragma once

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

struct SGDOptions {
  Required<double> lr;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  ///< needs momentum > 0 and dampening = 0
  bool maximize = false;  ///< ascend instead
};

/// Stochastic gradient descent with momentum (Sutskever et al., "On the importance of initialization and
/// momentum in deep learning", 2013, in the form in which the learning rate is outside the momentum):
///
///   g += weight_decay * p;  b = momentum * b + (1 - dampening) * g  (b = g at first)
///   p -= lr * (nesterov ? g + momentum * b : b)
class SGD : public OptimizerWith<SGDOptions> {
 public:
  SGD(std::vector<Tensor> params, SGDOptions options);
  explicit SGD(std::vector<Group> groups);

 protected:
  void check_options_of_group(const SGDOptions& o) const override;
  void update(std::span<const Turn> turns) override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t) const override { return options(group).momentum != 0; }
};

}  // namespace pleat::optim
