// Host and device.
#include "pleat/nn/optim/adagrad.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct AdagradStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, lr_decay, decay, eps;
  double rate = 0;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rate = lr / (1 + static_cast<double>(step - 1) * lr_decay); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s) const {
    const T g = T(sign) * dp + T(decay) * p;
    s += g * g;
    p -= T(rate) * g / (std::sqrt(s) + T(eps));
  }
};

}  // namespace

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
  std::vector<ops::Update<AdagradStep>> steps;
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
