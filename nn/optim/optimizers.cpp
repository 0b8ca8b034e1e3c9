// Host and device.
#include "pleat/nn/optim/optimizers.h"

#include <bit>
#include <tuple>

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

/// Makes the updates that use these states; none where the rule needs others always.
template <class Rule, unsigned used>
void update_with(const std::string& optimizer, std::span<RuleUpdate> updates) {
  using F = Formula<Rule, used>;
  std::vector<ops::Update<F>> chosen;
  chosen.reserve(updates.size());
  for (RuleUpdate& update : updates) {
    if (update.used != used) continue;
    ops::Update<F>& one = chosen.emplace_back(ops::Update<F>{
        {std::get<Rule>(update.rule)}, {std::move(update.param), std::move(update.grad)}, update.count});
    auto next = one.tensors.begin() + 2;
    for (Tensor& state : update.states)
      if (state.defined()) *next++ = std::move(state);
  }
  if (!chosen.empty()) ops::update(optimizer, chosen);
}

template <class Rule>
constexpr bool can_use(unsigned used) {
  for (std::size_t k = 0; k < std::size(Rule::states); ++k)
    if (Rule::states[k].needed == nullptr && (used >> k & 1) == 0) return false;
  return true;
}

}  // namespace

void check_range(const char* optimizer, const char* option, double value, Range range) {
  if (range == Range::at_least_0) check_at_least_0(optimizer, option, value);
  if (range == Range::fraction) check_fraction(optimizer, option, value);
  if (range == Range::share) check_share(optimizer, option, value);
}

void SGDRule::check(const SGDOptions& o) {
  pleat::check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                           "SGD: nesterov needs momentum > 0 and dampening = 0, got {} and {}", o.momentum,
                           o.dampening);
}

void update_by_rule(const std::string& optimizer, std::span<RuleUpdate> updates) {
  const auto update_all = [&]<class Rule, unsigned... used>(const Rule&,
                                                            std::integer_sequence<unsigned, used...>) {
    const auto update_some = [&]<unsigned some>() {
      if constexpr (can_use<Rule>(some)) update_with<Rule, some>(optimizer, updates);
    };
    (update_some.template operator()<used>(), ...);
  };
  std::visit(
      [&]<class Rule>(const Rule& rule) {
        constexpr unsigned sets = 1U << std::size(Rule::states);
        update_all(rule, std::make_integer_sequence<unsigned, sets>{});
      },
      updates[0].rule);
}

}  // namespace pleat::optim
