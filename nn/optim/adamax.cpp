// Host and device.
#include "pleat/nn/optim/adamax.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct AdamaxStep {
  static constexpr std::size_t operands = 4;
  double sign, lr, beta1, beta2, eps, decay;
  double rate = 0;

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    rate = lr / (1 - std::pow(beta1, static_cast<double>(step)));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& u) const {
    const T g = T(sign) * dp + T(decay) * p;
    m = T(beta1) * m + T(1 - beta1) * g;
    const T faded = T(beta2) * u;
    const T size = std::abs(g) + T(eps);
    u = faded > size ? faded : size;
    p -= T(rate) * m / u;
  }
};

}  // namespace

Adamax::Adamax(std::vector<Tensor> params, AdamaxOptions options) : Adamax({{std::move(params), options}}) {}

Adamax::Adamax(std::vector<Group> groups) : OptimizerWith("Adamax", {"exp_avg", {"exp_inf", true}}) {
  add_groups(std::move(groups));
}

void Adamax::check_options_of_group(const AdamaxOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void Adamax::update(std::span<const Turn> turns) {
  std::vector<ops::Update<AdamaxStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const AdamaxOptions& o = options(entry.group);
    steps.push_back({{.sign = o.maximize ? -1.0 : 1.0,
                      .lr = o.lr,
                      .beta1 = o.betas[0],
                      .beta2 = o.betas[1],
                      .eps = o.eps,
                      .decay = o.weight_decay},
                     {entry.param, grad, state_of(entry, 0), state_of(entry, 1)},
                     count});
  }
  ops::update(name(), steps);
}

}  // namespace pleat::optim
