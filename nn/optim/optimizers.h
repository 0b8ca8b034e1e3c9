#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "pleat/core/base/device_function.h"
#include "pleat/core/base/required.h"
#include "pleat/nn/optim/optimizer.h"
#include "pleat/ops/update/step_count.h"

/// Optimisers that update each element of a parameter from its gradient and its own history. Each is a rule:
/// options, the names of its states, and its formula as a functor of one element, which CPU and GPU share. To
/// add one, write its rule here, with an alias behind it, and add it to AnyRule (docs/adding_an_op.md).

namespace pleat::optim {

template <class Rule>
class RuleOptimizer;

/// A tensor of a parameter's shape that a rule keeps for it, 0 at first.
template <class Options>
struct RuleState {
  const char* name;
  bool of_squares = false;                   ///< never negative
  bool (*needed)(const Options&) = nullptr;  ///< none: always
};

/// What a formula gets in the place of a state that the options do not need.
struct Unused {};
template <class State>
inline constexpr bool is_used = !std::same_as<std::remove_cvref_t<State>, Unused>;

/// The base of rules. A rule has `name`, `states` and `operator()(p, dp, states...)` with references to an
/// element of the parameter and of each state. `at_step(t)`, if there is one, works out what goes by the
/// number of the update, from 1.
template <class OptionsOfRule>
struct RuleWith {
  using Options = OptionsOfRule;
  using State = RuleState<Options>;
  Options o;
  double sign;  ///< of the gradient

  explicit RuleWith(const Options& options) : o(options), sign(options.maximize ? -1 : 1) {}

  /// The gradient to descend, with weight decay in it.
  template <class T>
  PLEAT_HOST_DEVICE T gradient(T dp, T p) const {
    return T(sign) * dp + T(o.weight_decay) * p;
  }
  /// Brings the running average of gradients up to date.
  template <class T>
  PLEAT_HOST_DEVICE void average(T& m, T g) const {
    m = T(o.betas[0]) * m + T(1 - o.betas[0]) * g;
  }
  /// The same for that of squares.
  template <class T>
  PLEAT_HOST_DEVICE void average_square(T& v, T g) const {
    v = T(o.betas[1]) * v + T(1 - o.betas[1]) * g * g;
  }
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
struct SGDRule : RuleWith<SGDOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "SGD";
  static constexpr State states[] = {
      {.name = "momentum_buffer", .needed = [](const SGDOptions& options) { return options.momentum != 0; }}};
  static void check(const SGDOptions& options);

  double lr = o.lr, rate = sign * lr, decay = lr * o.weight_decay;
  /// Of the direction: with and without Nesterov one formula, without a branch.
  double g_share = o.nesterov ? 1 : 0, b_share = o.nesterov ? o.momentum : 1;
  int64_t first = 1;  ///< update that begins the momentum, in which dampening has no part
  double fresh = 1;   ///< share of the gradient in the momentum

  PLEAT_HOST_DEVICE void at_step(int64_t step) { fresh = step == first ? 1 : 1 - o.dampening; }

  template <class T, class Buffer>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, Buffer&& b) const {
    if constexpr (is_used<Buffer>) {
      const T g = gradient(dp, p);
      b = T(o.momentum) * b + T(fresh) * g;
      p -= T(lr) * (T(g_share) * g + T(b_share) * b);
    } else {
      p -= T(rate) * dp + T(decay) * p;
    }
  }
};
using SGD = RuleOptimizer<SGDRule>;

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
struct AdamRule : RuleWith<AdamOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "Adam";
  static constexpr State states[] = {{.name = "exp_avg"},
                                     {.name = "exp_avg_sq", .of_squares = true},
                                     {.name = "max_exp_avg_sq",
                                      .of_squares = true,
                                      .needed = [](const AdamOptions& options) { return options.amsgrad; }}};

  double keep = 1;     ///< of the parameter, before the update
  double rate = 0;     ///< lr / (1 - beta1^t)
  double v_scale = 0;  ///< 1 / sqrt(1 - beta2^t)

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    rate = o.lr / (1 - std::pow(o.betas[0], t));
    v_scale = 1 / std::sqrt(1 - std::pow(o.betas[1], t));
  }

  template <class T, class Largest>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v, Largest&& largest) const {
    const T g = gradient(dp, p);
    average(m, g);
    average_square(v, g);
    T second = v;
    if constexpr (is_used<Largest>) second = largest = largest < v ? v : largest;
    p = T(keep) * p - T(rate) * m / (std::sqrt(second) * T(v_scale) + T(o.eps));
  }
};
using Adam = RuleOptimizer<AdamRule>;

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
struct AdamWRule : AdamRule {
  using Options = AdamWOptions;
  static constexpr const char* name = "AdamW";

  explicit AdamWRule(const AdamWOptions& w)
      : AdamRule({w.lr, w.betas, w.eps, /*weight_decay=*/0, w.amsgrad, w.maximize}) {
    keep = 1 - w.lr * w.weight_decay;
  }
};
using AdamW = RuleOptimizer<AdamWRule>;

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
struct RMSpropRule : RuleWith<RMSpropOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "RMSprop";
  static constexpr State states[] = {
      {.name = "square_avg", .of_squares = true},
      {.name = "grad_avg", .needed = [](const RMSpropOptions& options) { return options.centered; }},
      {.name = "momentum_buffer",
       .needed = [](const RMSpropOptions& options) { return options.momentum != 0; }}};

  template <class T, class Average, class Buffer>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s, Average&& a, Buffer&& b) const {
    const T g = gradient(dp, p);
    s = T(o.alpha) * s + T(1 - o.alpha) * g * g;
    T variance = s;
    if constexpr (is_used<Average>) {
      a = T(o.alpha) * a + T(1 - o.alpha) * g;
      variance = s - a * a;
      variance = variance > 0 ? variance : T(0);  // rounding may make one of almost 0 negative
    }
    T d = g / (std::sqrt(variance) + T(o.eps));
    if constexpr (is_used<Buffer>) d = b = T(o.momentum) * b + d;
    p -= T(o.lr) * d;
  }
};
using RMSprop = RuleOptimizer<RMSpropRule>;

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
struct AdagradRule : RuleWith<AdagradOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "Adagrad";
  static constexpr State states[] = {{.name = "sum", .of_squares = true}};

  double first_state = o.initial_accumulator_value;
  double rate = 0;

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    rate = o.lr / (1 + static_cast<double>(step - 1) * o.lr_decay);
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s) const {
    const T g = gradient(dp, p);
    s += g * g;
    p -= T(rate) * g / (std::sqrt(s) + T(o.eps));
  }
};
using Adagrad = RuleOptimizer<AdagradRule>;

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
struct AdadeltaRule : RuleWith<AdadeltaOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "Adadelta";
  static constexpr State states[] = {{.name = "square_avg", .of_squares = true},
                                     {.name = "acc_delta", .of_squares = true}};

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& v, T& u) const {
    const T g = gradient(dp, p);
    v = T(o.rho) * v + T(1 - o.rho) * g * g;
    const T d = std::sqrt(u + T(o.eps)) / std::sqrt(v + T(o.eps)) * g;
    u = T(o.rho) * u + T(1 - o.rho) * d * d;
    p -= T(o.lr) * d;
  }
};
using Adadelta = RuleOptimizer<AdadeltaRule>;

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
struct AdamaxRule : RuleWith<AdamaxOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "Adamax";
  static constexpr State states[] = {{.name = "exp_avg"}, {.name = "exp_inf", .of_squares = true}};

  double rate = 0;

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    rate = o.lr / (1 - std::pow(o.betas[0], static_cast<double>(step)));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& u) const {
    const T g = gradient(dp, p);
    average(m, g);
    const T faded = T(o.betas[1]) * u;
    const T size = std::abs(g) + T(o.eps);
    u = faded > size ? faded : size;
    p -= T(rate) * m / u;
  }
};
using Adamax = RuleOptimizer<AdamaxRule>;

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
struct NAdamRule : RuleWith<NAdamOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "NAdam";
  static constexpr State states[] = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .of_squares = true}};

  double of_gradient = 0;  ///< lr (1 - mu(t)) / (1 - M(t))
  double of_moment = 0;    ///< lr mu(t + 1) / (1 - M(t + 1))
  double v_scale = 0;      ///< 1 / sqrt(1 - beta2^t)

  PLEAT_HOST_DEVICE double mu(double t) const {
    return o.betas[0] * (1 - 0.5 * std::pow(0.96, t * o.momentum_decay));
  }

  /// M(t) without a product over all steps: with q = 0.96^momentum_decay,
  ///   sum over i <= t of log(1 - q^i / 2) = -sum over k of 2^-k / k (q^k + q^2k + ... + q^tk).
  PLEAT_HOST_DEVICE double product(double t) const {
    const double log_q = o.momentum_decay * std::log(0.96);
    double sum = t * std::log(o.betas[0]);
    double half = 1;
    for (int k = 1; k <= 54; ++k) {
      half *= 0.5;
      const double log_qk = k * log_q;
      // Without a decay all powers are 1.
      const double powers = log_qk == 0 ? t : std::exp(log_qk) * std::expm1(t * log_qk) / std::expm1(log_qk);
      sum -= half / k * powers;
    }
    return std::exp(sum);
  }

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    const double own = product(t);
    const double next = mu(t + 1);
    of_gradient = o.lr * (1 - mu(t)) / (1 - own);
    of_moment = o.lr * next / (1 - own * next);
    v_scale = 1 / std::sqrt(1 - std::pow(o.betas[1], t));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    const T g = gradient(dp, p);
    average(m, g);
    average_square(v, g);
    p -= (T(of_gradient) * g + T(of_moment) * m) / (std::sqrt(v) * T(v_scale) + T(o.eps));
  }
};
using NAdam = RuleOptimizer<NAdamRule>;

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
struct RAdamRule : RuleWith<RAdamOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "RAdam";
  static constexpr State states[] = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .of_squares = true}};

  double rate = 0;  ///< lr / (1 - beta1^t), rectified
  /// What divides while the variance is not known well enough: 1, then 0. No constant, or g++ would drop the
  /// division and fuse the product with the subtraction, and the CPU's bits would not be the GPU's.
  double unit = 1;

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    const double faded = std::pow(o.betas[1], t);
    const double r = 2 / (1 - o.betas[1]) - 1;
    const double s = r - 2 * t * faded / (1 - faded);
    rate = o.lr / (1 - std::pow(o.betas[0], t));
    unit = s > 5 ? 0 : 1;
    if (s > 5) rate *= std::sqrt((s - 4) * (s - 2) * r / ((r - 4) * (r - 2) * s) * (1 - faded));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    const T g = gradient(dp, p);
    average(m, g);
    average_square(v, g);
    const T divisor = std::sqrt(v) + T(o.eps);
    p -= T(rate) * m / (unit == 0 ? divisor : T(unit));
  }
};
using RAdam = RuleOptimizer<RAdamRule>;

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
struct LionRule : RuleWith<LionOptions> {
  using RuleWith::RuleWith;
  static constexpr const char* name = "Lion";
  static constexpr State states[] = {{.name = "exp_avg"}};

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m) const {
    const T g = T(sign) * dp;
    const T c = T(o.betas[0]) * m + T(1 - o.betas[0]) * g;
    const T direction = T(c > 0) - T(c < 0);
    p -= T(o.lr) * (direction + T(o.weight_decay) * p);
    m = T(o.betas[1]) * m + T(1 - o.betas[1]) * g;
  }
};
using Lion = RuleOptimizer<LionRule>;

/// The rules that the library has kernels for. AdamW's is Adam's with other numbers.
using AnyRule = std::variant<SGDRule, AdamRule, RMSpropRule, AdagradRule, AdadeltaRule, AdamaxRule, NAdamRule,
                             RAdamRule, LionRule>;

/// An update of a parameter, with as many states as its rule has; undefined are those that are not used.
struct RuleUpdate {
  AnyRule rule;
  Tensor param, grad;
  std::array<Tensor, 3> states;
  ops::StepCount count;
  unsigned used;  ///< a bit for each state
};
/// Makes updates of one rule together, whose tensors it takes.
void update_by_rule(const std::string& optimizer, std::span<RuleUpdate> updates);

/// What an option must be: finite and not negative, in [0, 1), or in [0, 1].
enum class Range { at_least_0, fraction, share };
/// Throws ValueError unless it is.
void check_range(const char* optimizer, const char* option, double value, Range range);

/// The optimiser of a rule.
template <class Rule>
class RuleOptimizer : public OptimizerWith<typename Rule::Options> {
  using Base = OptimizerWith<typename Rule::Options>;

 public:
  using Options = typename Rule::Options;
  using typename Base::Group;

  explicit RuleOptimizer(std::vector<Group> groups) : Base(Rule::name, states()) {
    this->add_groups(std::move(groups));
  }
  RuleOptimizer(std::vector<Tensor> params, Options options)
      : RuleOptimizer(std::vector<Group>{{std::move(params), std::move(options)}}) {}
  explicit RuleOptimizer(std::vector<Tensor> params) requires std::default_initializable<Options>
      : RuleOptimizer(std::move(params), Options{}) {}

 protected:
  using typename Base::ParamStep;

  /// What an option must be goes by its name.
  void check_options_of_group(const Options& o) const override {
    using enum Range;
    const auto check = [](const char* option, double value, Range range) {
      check_range(Rule::name, option, value, range);
    };
    check("lr", o.lr, at_least_0);
    if constexpr (requires { o.betas; }) {
      check("betas[0]", o.betas[0], fraction);
      check("betas[1]", o.betas[1], fraction);
    }
    if constexpr (requires { o.alpha; }) check("alpha", o.alpha, fraction);
    if constexpr (requires { o.rho; }) check("rho", o.rho, share);
    if constexpr (requires { o.momentum; }) check("momentum", o.momentum, share);
    if constexpr (requires { o.dampening; }) check("dampening", o.dampening, share);
    if constexpr (requires { o.eps; }) check("eps", o.eps, at_least_0);
    if constexpr (requires { o.lr_decay; }) check("lr_decay", o.lr_decay, at_least_0);
    if constexpr (requires { o.momentum_decay; }) check("momentum_decay", o.momentum_decay, at_least_0);
    if constexpr (requires { o.initial_accumulator_value; })
      check("initial_accumulator_value", o.initial_accumulator_value, at_least_0);
    check("weight_decay", o.weight_decay, at_least_0);
    if constexpr (requires { Rule::check(o); }) Rule::check(o);
  }
  bool is_elementwise() const override { return true; }
  bool needs_state(std::size_t group, std::size_t state) const override {
    const auto needed = Rule::states[state].needed;
    return needed == nullptr || needed(Rule(this->options(group)).o);
  }
  void update(std::span<const ParamStep> steps) override {
    std::vector<RuleUpdate> updates;
    updates.reserve(steps.size());
    for (const auto& [entry, grad, count] : steps) {
      Rule rule(this->options(entry.group));
      double first_state = 0;
      if constexpr (requires { rule.first_state; }) first_state = rule.first_state;
      if constexpr (requires { rule.first; }) rule.first = entry.before[0] + 1;
      RuleUpdate& one = updates.emplace_back(RuleUpdate{rule, entry.param, grad, {}, count, 0});
      for (std::size_t k = 0; k < std::size(Rule::states); ++k) {
        if (!needs_state(entry.group, k)) continue;
        one.states[k] = this->state_of(entry, k, first_state);
        one.used |= 1U << k;
      }
    }
    update_by_rule(this->name(), updates);
  }

 private:
  static auto states() {
    std::vector<typename Base::State> states;
    for (const auto& state : Rule::states) states.push_back({state.name, state.of_squares});
    return states;
  }
};

}  // namespace pleat::optim
