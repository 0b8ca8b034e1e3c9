#include "pleat/nn/optim/lion.h"

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {

Lion::Lion(std::vector<Tensor> params, LionOptions options) : Lion({{std::move(params), options}}) {}

Lion::Lion(std::vector<Group> groups) : OptimizerWith("Lion", {"exp_avg"}) { add_groups(std::move(groups)); }

void Lion::check_options_of_group(const LionOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void Lion::update(std::span<const Turn> turns) {
  std::vector<ops::Update<ops::LionStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const LionOptions& o = options(entry.group);
    steps.push_back({{.sign = o.maximize ? -1.0 : 1.0,
                      .lr = o.lr,
                      .beta1 = o.betas[0],
                      .beta2 = o.betas[1],
                      .decay = o.weight_decay},
                     {entry.param, grad, state_of(entry, 0)},
                     count});
  }
  ops::update(name(), steps);
}

}  // namespace pleat::optim
