#include "pleat/nn/optim/sgd.h"

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {

SGD::SGD(std::vector<Tensor> params, SGDOptions options) : SGD({{std::move(params), std::move(options)}}) {}

SGD::SGD(std::vector<Group> groups) : OptimizerWith("SGD", {"momentum_buffer"}) {
  add_groups(std::move(groups));
}

void SGD::check_options_of_group(const SGDOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_share(name(), "momentum", o.momentum);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check_share(name(), "dampening", o.dampening);
  check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                    "SGD: nesterov needs momentum > 0 and dampening = 0, got {} and {}", o.momentum,
                    o.dampening);
}

void SGD::update(std::span<const Turn> turns) {
  std::vector<ops::Update<ops::SgdStep>> plain;
  std::vector<ops::Update<ops::SgdMomentumStep>> with_momentum;
  for (const auto& [entry, grad, count] : turns) {
    const SGDOptions& o = options(entry.group);
    const double sign = o.maximize ? -1 : 1;
    if (o.momentum == 0) {
      plain.push_back({{.rate = sign * o.lr, .decay = o.lr * o.weight_decay}, {entry.param, grad}, count});
      continue;
    }
    // From b = 0, b = g at the first update whatever the dampening.
    const Tensor buffer = state_of(entry, 0);
    with_momentum.push_back({{.sign = sign,
                              .lr = o.lr,
                              .momentum = o.momentum,
                              .decay = o.weight_decay,
                              .dampening = o.dampening,
                              .g_share = o.nesterov ? 1.0 : 0.0,
                              .b_share = o.nesterov ? o.momentum : 1.0,
                              .first = entry.before[0] + 1},
                             {entry.param, grad, buffer},
                             count});
  }
  ops::update(name(), plain);
  ops::update(name(), with_momentum);
}

}  // namespace pleat::optim
