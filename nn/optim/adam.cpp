#include "pleat/nn/optim/adam.h"

#include "pleat/nn/optim/fused.h"

namespace pleat::optim {
namespace {

template <class Options>
void check_adam(const std::string& name, const Options& o) {
  check_at_least_0(name, "lr", o.lr);
  check_fraction(name, "betas[0]", o.betas[0]);
  check_fraction(name, "betas[1]", o.betas[1]);
  check_at_least_0(name, "eps", o.eps);
  check_at_least_0(name, "weight_decay", o.weight_decay);
}

/// Numbers of one update.
struct Step {
  double sign, beta1, beta2, eps;
  double l2;       ///< weight decay in the gradient
  double keep;     ///< of the parameter, before the update
  double rate;     ///< lr / (1 - beta1^t)
  double v_scale;  ///< 1 / sqrt(1 - beta2^t)
};

template <class Options>
Step make_step(const Options& o, int64_t step, double l2, double decoupled) {
  const auto t = static_cast<double>(step);
  return {o.maximize ? -1.0 : 1.0,
          o.betas[0],
          o.betas[1],
          o.eps,
          l2,
          1 - o.lr * decoupled,
          o.lr / (1 - std::pow(o.betas[0], t)),
          1 / std::sqrt(1 - std::pow(o.betas[1], t))};
}

template <class T>
void update_moments(const Step& s, T p, T dp, T& m, T& v) {
  const T g = T(s.sign) * dp + T(s.l2) * p;
  m = T(s.beta1) * m + T(1 - s.beta1) * g;
  v = T(s.beta2) * v + T(1 - s.beta2) * g * g;
}

template <class T>
T moved(const Step& s, T p, T m, T v) {
  return T(s.keep) * p - T(s.rate) * m / (std::sqrt(v) * T(s.v_scale) + T(s.eps));
}

void apply(const std::string& name, const Step& s, const Tensor& param, const Tensor& grad, const Tensor& m,
           const Tensor& v, const Tensor& v_max) {
  if (v_max.defined()) {
    fused_update(
        name,
        [s]<class T>(T& p, T g, T& m_, T& v_, T& largest) {
          update_moments(s, p, g, m_, v_);
          largest = largest < v_ ? v_ : largest;
          p = moved(s, p, m_, largest);
        },
        param, grad, m, v, v_max);
  } else {
    fused_update(
        name,
        [s]<class T>(T& p, T g, T& m_, T& v_) {
          update_moments(s, p, g, m_, v_);
          p = moved(s, p, m_, v_);
        },
        param, grad, m, v);
  }
}

std::vector<std::string> state_names() { return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }

}  // namespace

Adam::Adam(std::vector<Tensor> params, AdamOptions options) : Adam({{std::move(params), options}}) {}

Adam::Adam(std::vector<Group> groups) : OptimizerWith("Adam", state_names()) {
  add_groups(std::move(groups));
}
void Adam::check_group(std::size_t group) const { check_adam(name(), options(group)); }
void Adam::update(Entry& entry, const Tensor& grad) {
  const AdamOptions& o = options(entry.group);
  apply(name(), make_step(o, entry.step, o.weight_decay, 0), entry.param, grad, state_of(entry, 0),
        state_of(entry, 1), o.amsgrad ? state_of(entry, 2) : Tensor());
}

AdamW::AdamW(std::vector<Tensor> params, AdamWOptions options) : AdamW({{std::move(params), options}}) {}

AdamW::AdamW(std::vector<Group> groups) : OptimizerWith("AdamW", state_names()) {
  add_groups(std::move(groups));
}
void AdamW::check_group(std::size_t group) const { check_adam(name(), options(group)); }
void AdamW::update(Entry& entry, const Tensor& grad) {
  const AdamWOptions& o = options(entry.group);
  apply(name(), make_step(o, entry.step, 0, o.weight_decay), entry.param, grad, state_of(entry, 0),
        state_of(entry, 1), o.amsgrad ? state_of(entry, 2) : Tensor());
}

}  // namespace pleat::optim
