// Host and device.
#include "pleat/nn/optim/lion.h"

#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct LionStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, beta1, beta2, decay;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m) const {
    const T g = T(sign) * dp;
    const T c = T(beta1) * m + T(1 - beta1) * g;
    const T direction = T(c > 0) - T(c < 0);
    p -= T(lr) * (direction + T(decay) * p);
    m = T(beta2) * m + T(1 - beta2) * g;
  }
};

}  // namespace

Lion::Lion(std::vector<Tensor> params, LionOptions options) : Lion({{std::move(params), options}}) {}

Lion::Lion(std::vector<Group> groups) : OptimizerWith("Lion", {"exp_avg"}) { add_groups(std::move(groups)); }

void Lion::check_options_of_group(const LionOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void Lion::update(std::span<const Turn> turns) {
  std::vector<ops::Update<LionStep>> steps;
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
