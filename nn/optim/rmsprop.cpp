// Host and device.
#include "pleat/nn/optim/rmsprop.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct RmspropRule {
  double sign, alpha, decay, eps;

  /// The direction, with the running averages brought up to date: of the square, and of the gradient where
  /// the variance is to be centred.
  template <class T, class... Average>
  PLEAT_HOST_DEVICE T direction(T p, T dp, T& s, Average&... a) const {
    const T g = T(sign) * dp + T(decay) * p;
    s = T(alpha) * s + T(1 - alpha) * g * g;
    T variance = s;
    // Rounding may make a variance of almost 0 negative.
    ((a = T(alpha) * a + T(1 - alpha) * g, variance = s - a * a, variance = variance > 0 ? variance : T(0)),
     ...);
    return g / (std::sqrt(variance) + T(eps));
  }
};

template <bool centered>
struct RmspropStep {
  static constexpr std::size_t operands = centered ? 4 : 3;
  RmspropRule rule;
  double lr;

  template <class T, class... Average>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s, Average&... a) const {
    p -= T(lr) * rule.direction(p, dp, s, a...);
  }
};

template <bool centered>
struct RmspropMomentumStep {
  static constexpr std::size_t operands = centered ? 5 : 4;
  RmspropRule rule;
  double lr, momentum;

  template <class T, class... Average>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s, T& b, Average&... a) const {
    b = T(momentum) * b + rule.direction(p, dp, s, a...);
    p -= T(lr) * b;
  }
};
enum State : std::size_t { square_avg, grad_avg, momentum_buffer };
}  // namespace

RMSprop::RMSprop(std::vector<Tensor> params, RMSpropOptions options)
    : RMSprop({{std::move(params), options}}) {}

RMSprop::RMSprop(std::vector<Group> groups)
    : OptimizerWith("RMSprop", {{"square_avg", true}, "grad_avg", "momentum_buffer"}) {
  add_groups(std::move(groups));
}

void RMSprop::check_options_of_group(const RMSpropOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "alpha", o.alpha);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check_share(name(), "momentum", o.momentum);
}

bool RMSprop::needs_state(std::size_t group, std::size_t state) const {
  const RMSpropOptions& o = options(group);
  return state == square_avg || (state == grad_avg && o.centered) ||
         (state == momentum_buffer && o.momentum != 0);
}

void RMSprop::update(std::span<const Turn> turns) {
  std::vector<ops::Update<RmspropStep<false>>> plain;
  std::vector<ops::Update<RmspropStep<true>>> centered;
  std::vector<ops::Update<RmspropMomentumStep<false>>> with_momentum;
  std::vector<ops::Update<RmspropMomentumStep<true>>> centered_with_momentum;
  for (const auto& [entry, grad, count] : turns) {
    const RMSpropOptions& o = options(entry.group);
    const RmspropRule rule{
        .sign = o.maximize ? -1.0 : 1.0, .alpha = o.alpha, .decay = o.weight_decay, .eps = o.eps};
    const Tensor& param = entry.param;
    const Tensor s = state_of(entry, square_avg);
    const Tensor b = o.momentum != 0 ? state_of(entry, momentum_buffer) : Tensor();
    const Tensor a = o.centered ? state_of(entry, grad_avg) : Tensor();
    if (a.defined() && b.defined())
      centered_with_momentum.push_back({{rule, o.lr, o.momentum}, {param, grad, s, b, a}, count});
    else if (b.defined())
      with_momentum.push_back({{rule, o.lr, o.momentum}, {param, grad, s, b}, count});
    else if (a.defined())
      centered.push_back({{rule, o.lr}, {param, grad, s, a}, count});
    else
      plain.push_back({{rule, o.lr}, {param, grad, s}, count});
  }
  ops::update(name(), plain);
  ops::update(name(), centered);
  ops::update(name(), with_momentum);
  ops::update(name(), centered_with_momentum);
}

}  // namespace pleat::optim
