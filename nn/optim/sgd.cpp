#include "pleat/nn/optim/sgd.h"

#include "pleat/nn/optim/fused.h"

namespace pleat::optim {

SGD::SGD(std::vector<Tensor> params, SGDOptions options) : SGD({{std::move(params), std::move(options)}}) {}

SGD::SGD(std::vector<Group> groups) : OptimizerWith("SGD", {"momentum_buffer"}) {
  add_groups(std::move(groups));
}

void SGD::check_group(std::size_t group) const {
  const SGDOptions& o = options(group);
  check_at_least_0(name(), "lr", o.lr);
  check_at_least_0(name(), "momentum", o.momentum);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check<ValueError>(std::isfinite(o.dampening), "SGD: dampening must be finite, got {}", o.dampening);
  check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                    "SGD: nesterov needs momentum > 0 and dampening = 0, got {} and {}", o.momentum,
                    o.dampening);
}

void SGD::update(Entry& entry, const Tensor& grad) {
  const SGDOptions& o = options(entry.group);
  const double sign = o.maximize ? -1 : 1;
  if (o.momentum == 0) {
    fused_update(
        name(),
        [rate = sign * o.lr, decay = o.lr * o.weight_decay]<class T>(T& p, T dp) {
          p -= T(rate) * dp + T(decay) * p;
        },
        entry.param, grad);
    return;
  }
  // From b = 0, b = g at the first update whatever the dampening.
  const double fresh = entry.state[0].defined() ? 1 - o.dampening : 1;
  // The direction, as one formula, without a branch in the loop.
  const double g_share = o.nesterov ? 1 : 0;
  const double b_share = o.nesterov ? o.momentum : 1;
  fused_update(
      name(),
      [=, lr = o.lr.get(), momentum = o.momentum, decay = o.weight_decay]<class T>(T& p, T dp, T& b) {
        const T g = T(sign) * dp + T(decay) * p;
        b = T(momentum) * b + T(fresh) * g;
        p -= T(lr) * (T(g_share) * g + T(b_share) * b);
      },
      entry.param, grad, state_of(entry, 0));
}

}  // namespace pleat::optim
