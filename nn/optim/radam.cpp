// Host and device.
#include "pleat/nn/optim/radam.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct RAdamStep {
  static constexpr std::size_t operands = 4;
  double sign, lr, beta1, beta2, eps, decay;
  double rate = 0;      ///< lr / (1 - beta1^t), rectified
  bool adapts = false;  ///< whether the variance is known well enough

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    const double faded = std::pow(beta2, t);
    const double r = 2 / (1 - beta2) - 1;
    const double s = r - 2 * t * faded / (1 - faded);
    rate = lr / (1 - std::pow(beta1, t));
    adapts = s > 5;
    if (adapts) rate *= std::sqrt((s - 4) * (s - 2) * r / ((r - 4) * (r - 2) * s) * (1 - faded));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    const T g = T(sign) * dp + T(decay) * p;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * g * g;
    const T divisor = std::sqrt(v) + T(eps);
    p -= T(rate) * m / (adapts ? divisor : T(1));
  }
};

}  // namespace

RAdam::RAdam(std::vector<Tensor> params, RAdamOptions options) : RAdam({{std::move(params), options}}) {}

RAdam::RAdam(std::vector<Group> groups) : OptimizerWith("RAdam", {"exp_avg", {"exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}

void RAdam::check_options_of_group(const RAdamOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void RAdam::update(std::span<const Turn> turns) {
  std::vector<ops::Update<RAdamStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const RAdamOptions& o = options(entry.group);
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
