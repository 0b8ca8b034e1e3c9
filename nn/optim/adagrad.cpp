#include "pleat/nn/optim/adagrad.h"

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {

Adagrad::Adagrad(std::vector<Tensor> params, AdagradOptions options)
    : Adagrad({{std::move(params), options}}) {}

Adagrad::Adagrad(std::vector<Group> groups) : OptimizerWith("Adagrad", {{"sum", true}}) {
  add_groups(std::move(groups));
}

void Adagrad::check_options_of_group(const AdagradOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_at_least_0(name(), "lr_decay", o.lr_decay);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check_at_least_0(name(), "initial_accumulator_value", o.initial_accumulator_value);
  check_at_least_0(name(), "eps", o.eps);
}

void Adagrad::update(std::span<const Turn> turns) {
  std::vector<ops::Update<ops::AdagradStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const AdagradOptions& o = options(entry.group);
    steps.push_back({{.sign = o.maximize ? -1.0 : 1.0,
                      .lr = o.lr,
                      .lr_decay = o.lr_decay,
                      .decay = o.weight_decay,
                      .eps = o.eps},
                     {entry.param, grad, state_of(entry, 0, o.initial_accumulator_value)},
                     count});
  }
  ops::update(name(), steps);
}

}  // namespace pleat::optim
