// Host and device.
#include "pleat/nn/optim/nadam.h"

#include <cmath>
#include <cstddef>

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

struct NAdamStep {
  static constexpr std::size_t operands = 4;
  double sign, lr, beta1, beta2, eps, decay, momentum_decay;
  double of_gradient = 0;  ///< lr (1 - mu(t)) / (1 - M(t))
  double of_moment = 0;    ///< lr mu(t + 1) / (1 - M(t + 1))
  double v_scale = 0;      ///< 1 / sqrt(1 - beta2^t)

  PLEAT_HOST_DEVICE double mu(double t) const {
    return beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay));
  }

  /// M(t) without a product over all steps: with q = 0.96^momentum_decay,
  ///   sum over i <= t of log(1 - q^i / 2) = -sum over k of 2^-k / k (q^k + q^2k + ... + q^tk).
  PLEAT_HOST_DEVICE double product(double t) const {
    const double log_q = momentum_decay * std::log(0.96);
    double sum = t * std::log(beta1);
    double half = 1;
    for (int k = 1; k <= 54; ++k) {
      half *= 0.5;
      const double log_qk = k * log_q;
      // Without a decay all powers are 1.
      const double powers = log_qk == 0 ? t : std::exp(log_qk) * std::expm1(t * log_qk) / std::expm1(log_qk);
      sum -= half / k * powers;
    }
    return std::exp(sum);
  }

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    const double own = product(t);
    const double next = mu(t + 1);
    of_gradient = lr * (1 - mu(t)) / (1 - own);
    of_moment = lr * next / (1 - own * next);
    v_scale = 1 / std::sqrt(1 - std::pow(beta2, t));
  }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    const T g = T(sign) * dp + T(decay) * p;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * g * g;
    p -= (T(of_gradient) * g + T(of_moment) * m) / (std::sqrt(v) * T(v_scale) + T(eps));
  }
};

}  // namespace

NAdam::NAdam(std::vector<Tensor> params, NAdamOptions options) : NAdam({{std::move(params), options}}) {}

NAdam::NAdam(std::vector<Group> groups) : OptimizerWith("NAdam", {"exp_avg", {"exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}

void NAdam::check_options_of_group(const NAdamOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "betas[0]", o.betas[0]);
  check_fraction(name(), "betas[1]", o.betas[1]);
  check_at_least_0(name(), "momentum_decay", o.momentum_decay);
  check_at_least_0(name(), "eps", o.eps);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
}

void NAdam::update(std::span<const Turn> turns) {
  std::vector<ops::Update<NAdamStep>> steps;
  for (const auto& [entry, grad, count] : turns) {
    const NAdamOptions& o = options(entry.group);
    steps.push_back({{.sign = o.maximize ? -1.0 : 1.0,
                      .lr = o.lr,
                      .beta1 = o.betas[0],
                      .beta2 = o.betas[1],
                      .eps = o.eps,
                      .decay = o.weight_decay,
                      .momentum_decay = o.momentum_decay},
                     {entry.param, grad, state_of(entry, 0), state_of(entry, 1)},
                     count});
  }
  ops::update(name(), steps);
}

}  // namespace pleat::optim
