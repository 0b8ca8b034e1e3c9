#include "pleat/nn/optim/lion.h"

#include "pleat/nn/optim/fused.h"

namespace pleat::optim {

Lion::Lion(std::vector<Tensor> params, LionOptions options) : Lion({{std::move(params), options}}) {}

Lion::Lion(std::vector<Group> groups) : OptimizerWith("Lion", {"exp_avg"}) { add_groups(std::move(groups)); }

void Lion::check_group(std::size_t group) const {
  const LionOptions& o = options(group);
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void Lion::update(Entry& entry, const Tensor& grad) {
  const LionOptions& o = options(entry.group);
  const double sign = o.maximize ? -1 : 1;
  fused_update(
      name(),
      [=, lr = o.lr, beta1 = o.betas[0], beta2 = o.betas[1], decay = o.weight_decay]<class T>(T& p, T dp,
                                                                                              T& m) {
        const T g = T(sign) * dp;
        const T c = T(beta1) * m + T(1 - beta1) * g;
        const T direction = T(c > 0) - T(c < 0);
        p -= T(lr) * (direction + T(decay) * p);
        m = T(beta2) * m + T(1 - beta2) * g;
      },
      entry.param, grad, state_of(entry, 0));
}

}  // namespace pleat::optim
