#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/optim/optimizer.h"

/// Optimisers that update each element of a parameter from its gradient and its own history.

namespace pleat::optim {

/// The optimiser with these options. Its formula is a rule of nn/optim/rules.h.
template <class Options>
class RuleOptimizer : public OptimizerWith<Options> {
  using Base = OptimizerWith<Options>;

 public:
  using typename Base::Group;

  explicit RuleOptimizer(std::vector<Group> groups);
  RuleOptimizer(std::vector<Tensor> params, Options options)
      : RuleOptimizer(std::vector<Group>{{std::move(params), std::move(options)}}) {}
  /// A template, since clang 14 makes other constructors with the class, whatever they require.
  template <std::default_initializable Defaults = Options>
  explicit RuleOptimizer(std::vector<Tensor> params) : RuleOptimizer(std::move(params), Defaults{}) {}

 protected:
  using typename Base::ParamStep;

  void check_options_of_group(const Options& options) const override;
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t state) const override;
  void update(std::span<const ParamStep> steps) override;
};

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
using SGD = RuleOptimizer<SGDOptions>;

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
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
using Adam = RuleOptimizer<AdamOptions>;

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019):
/// p -= lr * weight_decay * p before the update, and none in the gradient.
using AdamW = RuleOptimizer<AdamWOptions>;

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
using RMSprop = RuleOptimizer<RMSpropOptions>;

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
using Adagrad = RuleOptimizer<AdagradOptions>;

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
using Adadelta = RuleOptimizer<AdadeltaOptions>;

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
using Adamax = RuleOptimizer<AdamaxOptions>;

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
using NAdam = RuleOptimizer<NAdamOptions>;

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
using RAdam = RuleOptimizer<RAdamOptions>;

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
using Lion = RuleOptimizer<LionOptions>;

}  // namespace pleat::optim
