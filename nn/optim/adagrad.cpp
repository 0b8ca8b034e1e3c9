#include "pleat/nn/optim/adagrad.h"

#include "pleat/nn/optim/fused.h"

namespace pleat::optim {

Adagrad::Adagrad(std::vector<Tensor> params, AdagradOptions options)
    : Adagrad({{std::move(params), options}}) {}

Adagrad::Adagrad(std::vector<Group> groups) : OptimizerWith("Adagrad", {"sum"}) {
  add_groups(std::move(groups));
}

void Adagrad::check_group(std::size_t group) const {
  const AdagradOptions& o = options(group);
  check_at_least_0(name(), "lr", o.lr);
  check_at_least_0(name(), "lr_decay", o.lr_decay);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check_at_least_0(name(), "initial_accumulator_value", o.initial_accumulator_value);
  check_at_least_0(name(), "eps", o.eps);
}

void Adagrad::update(Entry& entry, const Tensor& grad) {
  const AdagradOptions& o = options(entry.group);
  const double sign = o.maximize ? -1 : 1;
  const double rate = o.lr / (1 + static_cast<double>(entry.step - 1) * o.lr_decay);
  fused_update(
      name(),
      [=, decay = o.weight_decay, eps = o.eps]<class T>(T& p, T dp, T& s) {
        const T g = T(sign) * dp + T(decay) * p;
        s += g * g;
        p -= T(rate) * g / (std::sqrt(s) + T(eps));
      },
      entry.param, grad, state_of(entry, 0, o.initial_accumulator_value));
}

}  // namespace pleat::optim
