// Host and device.
#include "pleat/nn/optim/optimizers.h"

#include <bit>
#include <tuple>

#include "pleat/nn/optim/rules.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// A rule with those of its states whose bits are set in `used`.
template <class Rule, unsigned used>
struct Formula {
  static constexpr std::size_t operands = 2 + std::popcount(used);
  Rule rule;

  /// Without states nothing goes by the step.
  PLEAT_HOST_DEVICE void at_step(int64_t step) requires(used != 0 && ops::GoesByStep<Rule>) {
    rule.at_step(step);
  }

  template <class T, class... States>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, States&... states) const {
    apply(p, dp, std::tie(states...), std::make_index_sequence<std::size(Rule::states)>{});
  }

 private:
  template <class T, class Given, std::size_t... K>
  PLEAT_HOST_DEVICE void apply(T& p, T dp, const Given& given, std::index_sequence<K...>) const {
    rule(p, dp, state<K>(given)...);
  }
  template <std::size_t k, class Given>
  PLEAT_HOST_DEVICE static decltype(auto) state([[maybe_unused]] const Given& given) {
    if constexpr ((used >> k & 1) != 0)
      return std::get<std::popcount(used & ((1U << k) - 1))>(given);
    else
      return Unused{};
  }
};

template <class Rule>
constexpr bool can_use(unsigned used) {
  for (std::size_t k = 0; k < std::size(Rule::states); ++k)
    if (Rule::states[k].needed == nullptr && (used >> k & 1) == 0) return false;
  return true;
}

/// The rule with these options, which must be in AllRules.
template <class Options, class Rules>
struct Find;
template <class Options, class First, class... More>
struct Find<Options, RuleList<First, More...>>
    : std::conditional_t<std::same_as<typename First::Options, Options>, std::type_identity<First>,
                         Find<Options, RuleList<More...>>> {};
template <class Options>
using RuleOf = typename Find<Options, AllRules>::type;

/// Whose formula a rule has with other numbers.
template <class Rule>
using FormulaOf = std::conditional_t<std::derived_from<Rule, AdamRule>, AdamRule, Rule>;

// Outside of the lambda that asks, in which nvcc 13 takes a member that is not there for an error.
template <class Rule>
constexpr bool has_first_update = requires(Rule rule) {
  rule.first;
};
template <class Rule>
double first_state_of(const Rule& rule) {
  if constexpr (requires { rule.first_state; })
    return rule.first_state;
  else
    return 0;
}

}  // namespace

template <class Options>
RuleOptimizer<Options>::RuleOptimizer(std::vector<Group> groups)
    : Base(RuleOf<Options>::name, [] {
        std::vector<typename Base::State> states;
        for (const auto& state : RuleOf<Options>::states) states.push_back({state.name, state.of_squares});
        return states;
      }()) {
  this->add_groups(std::move(groups));
}

/// What an option must be goes by its name.
template <class Options>
void RuleOptimizer<Options>::check_options_of_group(const Options& o) const {
  using Rule = RuleOf<Options>;
  const char* const name = Rule::name;
  check_at_least_0(name, "lr", o.lr);
  if constexpr (requires { o.betas; }) {
    check_fraction(name, "betas[0]", o.betas[0]);
    check_fraction(name, "betas[1]", o.betas[1]);
  }
  if constexpr (requires { o.alpha; }) check_fraction(name, "alpha", o.alpha);
  if constexpr (requires { o.rho; }) check_share(name, "rho", o.rho);
  if constexpr (requires { o.momentum; }) check_share(name, "momentum", o.momentum);
  if constexpr (requires { o.dampening; }) check_share(name, "dampening", o.dampening);
  if constexpr (requires { o.eps; }) check_at_least_0(name, "eps", o.eps);
  if constexpr (requires { o.lr_decay; }) check_at_least_0(name, "lr_decay", o.lr_decay);
  if constexpr (requires { o.momentum_decay; }) check_at_least_0(name, "momentum_decay", o.momentum_decay);
  if constexpr (requires { o.initial_accumulator_value; })
    check_at_least_0(name, "initial_accumulator_value", o.initial_accumulator_value);
  check_at_least_0(name, "weight_decay", o.weight_decay);
  if constexpr (requires { Rule::check(o); }) Rule::check(o);
}

template <class Options>
bool RuleOptimizer<Options>::needs_state(std::size_t group, std::size_t state) const {
  using Rule = RuleOf<Options>;
  const auto needed = Rule::states[state].needed;
  return needed == nullptr || needed(Rule(this->options(group)).o);
}

template <class Options>
void RuleOptimizer<Options>::update(std::span<const ParamStep> steps) {
  using Rule = RuleOf<Options>;
  constexpr std::size_t count = std::size(Rule::states);
  const auto used_by = [&](const ParamStep& step) {
    unsigned used = 0;
    for (std::size_t k = 0; k < count; ++k) used |= needs_state(step.entry.group, k) ? 1U << k : 0U;
    return used;
  };
  // Together those that use the same states.
  const auto update_those = [&]<unsigned used>(std::integral_constant<unsigned, used>) {
    using F = Formula<FormulaOf<Rule>, used>;
    std::vector<ops::Update<F>> chosen;
    chosen.reserve(steps.size());
    for (const auto& step : steps) {
      if (used_by(step) != used) continue;
      Rule rule(this->options(step.entry.group));
      const double first_state = first_state_of(rule);
      if constexpr (has_first_update<Rule>) rule.first = step.entry.before[0] + 1;
      auto& one = chosen.emplace_back(ops::Update<F>{{rule}, {step.entry.param, step.grad}, step.count});
      auto next = one.tensors.begin() + 2;
      for (std::size_t k = 0; k < count; ++k)
        if ((used >> k & 1) != 0) *next++ = this->state_of(step.entry, k, first_state);
    }
    if (!chosen.empty()) ops::update(this->name(), chosen);
  };
  [&]<unsigned... used>(std::integer_sequence<unsigned, used...>) {
    const auto update_if_used = [&]<unsigned some>(std::integral_constant<unsigned, some> constant) {
      if constexpr (can_use<Rule>(some)) update_those(constant);
    };
    (update_if_used(std::integral_constant<unsigned, used>()), ...);
  }
  (std::make_integer_sequence<unsigned, 1U << count>());
}

void SGDRule::check(const SGDOptions& o) {
  pleat::check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                           "SGD: nesterov needs momentum > 0 and dampening = 0, got {} and {}", o.momentum,
                           o.dampening);
}

template class RuleOptimizer<SGDOptions>;
template class RuleOptimizer<AdamOptions>;
template class RuleOptimizer<AdamWOptions>;
template class RuleOptimizer<RMSpropOptions>;
template class RuleOptimizer<AdagradOptions>;
template class RuleOptimizer<AdadeltaOptions>;
template class RuleOptimizer<AdamaxOptions>;
template class RuleOptimizer<NAdamOptions>;
template class RuleOptimizer<RAdamOptions>;
template class RuleOptimizer<LionOptions>;

}  // namespace pleat::optim
