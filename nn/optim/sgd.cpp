// Host and device.
#include "pleat/nn/optim/sgd.h"

#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// p -= rate * g + decay * p.
struct SgdStep {
  static constexpr std::size_t operands = 2;
  double rate, decay;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp) const {
    p -= T(rate) * dp + T(decay) * p;
  }
};

struct SgdMomentumStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, momentum, decay;
  double dampening;
  double g_share, b_share;  ///< of the direction: with and without Nesterov one formula, without a branch
  int64_t first;            ///< step with this momentum, in which dampening has no part
  double fresh = 1;         ///< share of the gradient in the momentum

  PLEAT_HOST_DEVICE void at_step(int64_t step) { fresh = step == first ? 1 : 1 - dampening; }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& b) const {
    const T g = T(sign) * dp + T(decay) * p;
    b = T(momentum) * b + T(fresh) * g;
    p -= T(lr) * (T(g_share) * g + T(b_share) * b);
  }
};

}  // namespace

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
  std::vector<ops::Update<SgdStep>> plain;
  std::vector<ops::Update<SgdMomentumStep>> with_momentum;
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
