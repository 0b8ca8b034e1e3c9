// Host and device.
#include "pleat/nn/optim/adam.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct AdamRule {
  double sign, beta1, beta2, eps;
  double l2;    ///< weight decay in the gradient
  double keep;  ///< of the parameter, before the update
  double lr;
  double rate = 0;     ///< lr / (1 - beta1^t)
  double v_scale = 0;  ///< 1 / sqrt(1 - beta2^t)

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    rate = lr / (1 - std::pow(beta1, t));
    v_scale = 1 / std::sqrt(1 - std::pow(beta2, t));
  }

  template <class T>
  PLEAT_HOST_DEVICE void update_moments(T p, T dp, T& m, T& v) const {
    const T g = T(sign) * dp + T(l2) * p;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * g * g;
  }

  template <class T>
  PLEAT_HOST_DEVICE T moved(T p, T m, T v) const {
    return T(keep) * p - T(rate) * m / (std::sqrt(v) * T(v_scale) + T(eps));
  }
};

struct AdamStep {
  static constexpr std::size_t operands = 4;
  AdamRule rule;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rule.at_step(step); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    rule.update_moments(p, dp, m, v);
    p = rule.moved(p, m, v);
  }
};

struct AmsgradStep {
  static constexpr std::size_t operands = 5;
  AdamRule rule;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rule.at_step(step); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v, T& largest) const {
    rule.update_moments(p, dp, m, v);
    largest = largest < v ? v : largest;
    p = rule.moved(p, m, largest);
  }
};

template <class Options>
void check_adam(const std::string& name, const Options& o) {
  check_at_least_0(name, "lr", o.lr);
  check_fraction(name, "betas[0]", o.betas[0]);
  check_fraction(name, "betas[1]", o.betas[1]);
  check_at_least_0(name, "eps", o.eps);
  check_at_least_0(name, "weight_decay", o.weight_decay);
}

template <class Options>
AdamRule rule_of(const Options& o, double l2, double decoupled) {
  return {.sign = o.maximize ? -1.0 : 1.0,
          .beta1 = o.betas[0],
          .beta2 = o.betas[1],
          .eps = o.eps,
          .l2 = l2,
          .keep = 1 - o.lr * decoupled,
          .lr = o.lr};
}

/// The updates of a step, with and without amsgrad.
struct Updates {
  std::vector<ops::Update<AdamStep>> plain;
  std::vector<ops::Update<AmsgradStep>> amsgrad;

  void run(const std::string& name) const {
    ops::update(name, plain);
    ops::update(name, amsgrad);
  }
};

}  // namespace

Adam::Adam(std::vector<Tensor> params, AdamOptions options) : Adam({{std::move(params), options}}) {}

Adam::Adam(std::vector<Group> groups)
    : OptimizerWith("Adam", {"exp_avg", {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}
void Adam::check_options_of_group(const AdamOptions& o) const { check_adam(name(), o); }
void Adam::update(std::span<const Turn> turns) {
  Updates updates;
  for (const auto& [entry, grad, count] : turns) {
    const AdamOptions& o = options(entry.group);
    const AdamRule rule = rule_of(o, o.weight_decay, 0);
    const Tensor m = state_of(entry, 0);
    const Tensor v = state_of(entry, 1);
    if (o.amsgrad)
      updates.amsgrad.push_back({{rule}, {entry.param, grad, m, v, state_of(entry, 2)}, count});
    else
      updates.plain.push_back({{rule}, {entry.param, grad, m, v}, count});
  }
  updates.run(name());
}

AdamW::AdamW(std::vector<Tensor> params, AdamWOptions options) : AdamW({{std::move(params), options}}) {}

AdamW::AdamW(std::vector<Group> groups)
    : OptimizerWith("AdamW", {"exp_avg", {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}
void AdamW::check_options_of_group(const AdamWOptions& o) const { check_adam(name(), o); }
void AdamW::update(std::span<const Turn> turns) {
  Updates updates;
  for (const auto& [entry, grad, count] : turns) {
    const AdamWOptions& o = options(entry.group);
    const AdamRule rule = rule_of(o, 0, o.weight_decay);
    const Tensor m = state_of(entry, 0);
    const Tensor v = state_of(entry, 1);
    if (o.amsgrad)
      updates.amsgrad.push_back({{rule}, {entry.param, grad, m, v, state_of(entry, 2)}, count});
    else
      updates.plain.push_back({{rule}, {entry.param, grad, m, v}, count});
  }
  updates.run(name());
}

}  // namespace pleat::optim
