// Private header: not installed.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "pleat/core/base/device_function.h"
#include "pleat/nn/optim/optimizers.h"

/// The formulas of the optimisers of optimizers.h, which has them in comments: functors of one element, which
/// CPU and GPU share. To add one, write its rule here and add it to AllRules (docs/adding_an_op.md).

namespace pleat::optim {

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

struct AdamWRule : AdamRule {
  using Options = AdamWOptions;
  static constexpr const char* name = "AdamW";

  explicit AdamWRule(const AdamWOptions& w)
      : AdamRule({w.lr, w.betas, w.eps, /*weight_decay=*/0, w.amsgrad, w.maximize}) {
    keep = 1 - w.lr * w.weight_decay;
  }
};

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

template <class... Rules>
struct RuleList {};
using AllRules = RuleList<SGDRule, AdamRule, AdamWRule, RMSpropRule, AdagradRule, AdadeltaRule, AdamaxRule,
                          NAdamRule, RAdamRule, LionRule>;

}  // namespace pleat::optim
