// Host and device.
#include "pleat/nn/optim/adadelta.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct AdadeltaStep {
  static constexpr std::size_t operands = 4;
  double sign, lr, rho, eps, decay;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& v, T& u) const {
    const T g = T(sign) * dp + T(decay) * p;
    v = T(rho) * v + T(1 - rho) * g * g;
    const T d = std::sqrt(u + T(eps)) / std::sqrt(v + T(eps)) * g;
    u = T(rho) * u + T(1 - rho) * d * d;
    p -= T(lr) * d;
  }
};

}  // namespace

Adadelta::Adadelta(std::vector<Tensor> params, AdadeltaOptions options)
    : Adadelta({{std::move(params), options}}) {}

Adadelta::Adadelta(std::vector<Group> groups)
    : OptimizerWith("Adadelta", {{"square_avg", true}, {"acc_delta", true}}) {
  add_groups(std::move(groups));
}

void Adadelta::check_options_of_group(const AdadeltaOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_share(name(), "rho", o.rho);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void Adadelta::update(std::span<const Turn> turns) {
  std::vector<ops::Update<AdadeltaStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const AdadeltaOptions& o = options(entry.group);
    steps.push_back(
        {{.sign = o.maximize ? -1.0 : 1.0, .lr = o.lr, .rho = o.rho, .eps = o.eps, .decay = o.weight_decay},
         {entry.param, grad, state_of(entry, 0), state_of(entry, 1)},
         count});
  }
  ops::update(name(), steps);
}

}  // namespace pleat::optim
