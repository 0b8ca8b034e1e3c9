#include "pleat/nn/optim/adam.h"

#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

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

template <class Options>
ops::AdamRule rule_of(const Options& o, double l2, double decoupled) {
  return {.sign = o.maximize ? -1.0 : 1.0,
          .beta1 = o.betas[0],
          .beta2 = o.betas[1],
          .eps = o.eps,
          .l2 = l2,
          .keep = 1 - o.lr * decoupled,
          .lr = o.lr};
}

/// The updates of a step, with and without amsgrad.
struct Updates {
  std::vector<ops::Update<ops::AdamStep>> plain;
  std::vector<ops::Update<ops::AmsgradStep>> amsgrad;

  void run(const std::string& name) const {
    ops::update(name, plain);
    ops::update(name, amsgrad);
  }
};

}  // namespace

Adam::Adam(std::vector<Tensor> params, AdamOptions options) : Adam({{std::move(params), options}}) {}

Adam::Adam(std::vector<Group> groups)
    : OptimizerWith("Adam", {"exp_avg", {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}
void Adam::check_options_of_group(const AdamOptions& o) const { check_adam(name(), o); }
void Adam::update(std::span<const Turn> turns) {
  Updates updates;
  for (const auto& [entry, grad, count] : turns) {
    const AdamOptions& o = options(entry.group);
    const ops::AdamRule rule = rule_of(o, o.weight_decay, 0);
    const Tensor m = state_of(entry, 0);
    const Tensor v = state_of(entry, 1);
    if (o.amsgrad)
      updates.amsgrad.push_back({{rule}, {entry.param, grad, m, v, state_of(entry, 2)}, count});
    else
      updates.plain.push_back({{rule}, {entry.param, grad, m, v}, count});
  }
  updates.run(name());
}

AdamW::AdamW(std::vector<Tensor> params, AdamWOptions options) : AdamW({{std::move(params), options}}) {}

AdamW::AdamW(std::vector<Group> groups)
    : OptimizerWith("AdamW", {"exp_avg", {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}) {
  add_groups(std::move(groups));
}
void AdamW::check_options_of_group(const AdamWOptions& o) const { check_adam(name(), o); }
void AdamW::update(std::span<const Turn> turns) {
  Updates updates;
  for (const auto& [entry, grad, count] : turns) {
    const AdamWOptions& o = options(entry.group);
    const ops::AdamRule rule = rule_of(o, 0, o.weight_decay);
    const Tensor m = state_of(entry, 0);
    const Tensor v = state_of(entry, 1);
    if (o.amsgrad)
      updates.amsgrad.push_back({{rule}, {entry.param, grad, m, v, state_of(entry, 2)}, count});
    else
      updates.plain.push_back({{rule}, {entry.param, grad, m, v}, count});
  }
  updates.run(name());
}

}  // namespace pleat::optim
