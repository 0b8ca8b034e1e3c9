#include "pleat/nn/optim/rmsprop.h"

#include "pleat/nn/optim/fused.h"

namespace pleat::optim {
namespace {
enum State : std::size_t { square_avg, grad_avg, momentum_buffer };
}  // namespace

RMSprop::RMSprop(std::vector<Tensor> params, RMSpropOptions options)
    : RMSprop({{std::move(params), options}}) {}

RMSprop::RMSprop(std::vector<Group> groups)
    : OptimizerWith("RMSprop", {"square_avg", "grad_avg", "momentum_buffer"}) {
  add_groups(std::move(groups));
}

void RMSprop::check_group(std::size_t group) const {
  const RMSpropOptions& o = options(group);
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "alpha", o.alpha);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check_at_least_0(name(), "momentum", o.momentum);
}

bool RMSprop::needs_state(std::size_t group, std::size_t state) const {
  const RMSpropOptions& o = options(group);
  return state == square_avg || (state == grad_avg && o.centered) ||
         (state == momentum_buffer && o.momentum != 0);
}

void RMSprop::update(Entry& entry, const Tensor& grad) {
  const RMSpropOptions& o = options(entry.group);
  const double sign = o.maximize ? -1 : 1;

  // The direction d of one element, with the running averages brought up to date; `a` is a state or nothing.
  const auto direction = [sign, alpha = o.alpha, decay = o.weight_decay, eps = o.eps]<class T>(
                             T p, T dp, T& s, auto&... a) {
    const T g = T(sign) * dp + T(decay) * p;
    s = T(alpha) * s + T(1 - alpha) * g * g;
    T variance = s;
    // Rounding may make a variance of almost 0 negative.
    ((a = T(alpha) * a + T(1 - alpha) * g, variance = s - a * a, variance = variance > 0 ? variance : T(0)),
     ...);
    return g / (std::sqrt(variance) + T(eps));
  };
  const auto plain = [direction, lr = o.lr]<class T>(T& p, T g, T& s, auto&... a) {
    p -= T(lr) * direction(p, g, s, a...);
  };
  const auto with_momentum = [direction, lr = o.lr, momentum = o.momentum]<class T>(T& p, T g, T& s, T& b,
                                                                                    auto&... a) {
    b = T(momentum) * b + direction(p, g, s, a...);
    p -= T(lr) * b;
  };

  const Tensor s = state_of(entry, square_avg);
  const Tensor b = o.momentum != 0 ? state_of(entry, momentum_buffer) : Tensor();
  const Tensor a = o.centered ? state_of(entry, grad_avg) : Tensor();
  if (a.defined() && b.defined())
    fused_update(name(), with_momentum, entry.param, grad, s, b, a);
  else if (b.defined())
    fused_update(name(), with_momentum, entry.param, grad, s, b);
  else if (a.defined())
    fused_update(name(), plain, entry.param, grad, s, a);
  else
    fused_update(name(), plain, entry.param, grad, s);
}

}  // namespace pleat::optim
