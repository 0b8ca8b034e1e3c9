#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <numbers>

#include "pleat/core/base/format.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/option_checks.h"

namespace pleat::optim {
namespace {

/// What an option must be goes by its name.
template <class R>
void check_options(const char* rate, const R& o) {
  constexpr bool cyclic = std::same_as<R, CyclicLR>;
  const auto count = [&](const char* option, int64_t value) { check_at_least(rate, option, value, 1); };
  if constexpr (requires { o.steps; })
    check_at_least(rate, "steps", o.steps, std::same_as<R, ConstantLR> ? 0 : 1);
  if constexpr (requires { o.step_size; }) count("step_size", o.step_size);
  if constexpr (requires { o.first; }) count("first", o.first);
  if constexpr (requires { o.mult; }) count("mult", o.mult);
  if constexpr (requires { o.total_steps; }) count("total_steps", o.total_steps);
  if constexpr (requires { o.steps_up; }) count("steps_up", o.steps_up);
  if constexpr (cyclic) count("steps_down", o.steps_down.value_or(1));
  if constexpr (requires { o.milestones; })
    for (const int64_t milestone : o.milestones.get()) check_at_least(rate, "a milestone", milestone, 0);
  if constexpr (requires { o.gamma; }) (cyclic ? check_share : check_at_least_0)(rate, "gamma", o.gamma);
  if constexpr (requires { o.eta_min; }) check_at_least_0(rate, "eta_min", o.eta_min);
  if constexpr (requires { o.factor; }) check_at_least_0(rate, "factor", o.factor);
  if constexpr (requires { o.start_factor; }) check_at_least_0(rate, "start_factor", o.start_factor);
  if constexpr (requires { o.end_factor; }) check_at_least_0(rate, "end_factor", o.end_factor);
  if constexpr (cyclic) check_at_least_0(rate, "base_lr", o.base_lr);
  if constexpr (requires { o.max_lr; })
    (cyclic ? check_at_least_0 : check_positive)(rate, "max_lr", o.max_lr);
  if constexpr (requires { o.power; }) check_positive(rate, "power", o.power);
  if constexpr (requires { o.div_factor; }) check_positive(rate, "div_factor", o.div_factor);
  if constexpr (requires { o.final_div_factor; })
    check_positive(rate, "final_div_factor", o.final_div_factor);
  if constexpr (requires { o.pct_start; }) check_share(rate, "pct_start", o.pct_start);
  if constexpr (requires { o.max_momentum; }) {
    check_fraction(rate, "base_momentum", o.base_momentum);
    check_fraction(rate, "max_momentum", o.max_momentum);
  }
}

double cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Where a one-cycle schedule is: between corner `phase` and the next, `share` of the way.
struct CyclePlace {
  std::size_t phase;
  double share;
};

CyclePlace place_in_cycle(const OneCycleLR& cycle, int64_t step) {
  check<ValueError>(
      step <= cycle.total_steps,
      "OneCycleLR: step {} of a cycle of {} steps; total_steps counts every step() of the training "
      "(epochs times batches), and a training that goes on after it needs a schedule of its own",
      step, cycle.total_steps.get());
  const auto total = static_cast<double>(cycle.total_steps.get());
  const double rise = cycle.pct_start * total;
  const std::array<double, 3> ends = cycle.three_phase
                                         ? std::array<double, 3>{rise - 1, 2 * rise - 2, total - 1}
                                         : std::array<double, 3>{rise - 1, total - 1, total - 1};
  const std::size_t phases = cycle.three_phase ? 3 : 2;
  const auto now = std::min(static_cast<double>(step), total - 1);
  double start = 0;
  for (std::size_t phase = 0;; ++phase) {
    if (now <= ends[phase] || phase + 1 == phases) {
      const double length = ends[phase] - start;
      return {phase, length > 0 ? (now - start) / length : 1};
    }
    start = ends[phase];
  }
}

double between(const OneCycleLR& cycle, double from, double to, double share) {
  return cycle.linear ? from + (to - from) * share : cosine(from, to, share);
}

}  // namespace

double StepLR::operator()(int64_t step, double base_lr) const {
  check();
  return base_lr * std::pow(gamma, static_cast<double>(step / step_size));
}
void StepLR::check() const { check_options("StepLR", *this); }

double MultiStepLR::operator()(int64_t step, double base_lr) const {
  check();
  const auto passed = std::ranges::count_if(milestones.get(), [=](int64_t m) { return m <= step; });
  return base_lr * std::pow(gamma, static_cast<double>(passed));
}
void MultiStepLR::check() const { check_options("MultiStepLR", *this); }

double ExponentialLR::operator()(int64_t step, double base_lr) const {
  check();
  return base_lr * std::pow(gamma, static_cast<double>(step));
}
void ExponentialLR::check() const { check_options("ExponentialLR", *this); }

double CosineAnnealingLR::operator()(int64_t step, double base_lr) const {
  check();
  return cosine(base_lr, eta_min, static_cast<double>(step) / static_cast<double>(steps.get()));
}
void CosineAnnealingLR::check() const { check_options("CosineAnnealingLR", *this); }

double CosineAnnealingWarmRestarts::operator()(int64_t step, double base_lr) const {
  check();
  int64_t length = first;
  if (mult == 1) step %= length;
  while (step >= length) {
    step -= length;
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    length = length > most / mult ? most : length * mult;  // longer than any count of steps
  }
  return cosine(base_lr, eta_min, static_cast<double>(step) / static_cast<double>(length));
}
void CosineAnnealingWarmRestarts::check() const { check_options("CosineAnnealingWarmRestarts", *this); }

double ConstantLR::operator()(int64_t step, double base_lr) const {
  check();
  return step < steps ? base_lr * factor : base_lr;
}
void ConstantLR::check() const { check_options("ConstantLR", *this); }

double LinearLR::operator()(int64_t step, double base_lr) const {
  check();
  const double share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return base_lr * (start_factor + (end_factor - start_factor) * share);
}
void LinearLR::check() const { check_options("LinearLR", *this); }

double PolynomialLR::operator()(int64_t step, double base_lr) const {
  check();
  const double left = 1 - static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return base_lr * std::pow(left, power);
}
void PolynomialLR::check() const { check_options("PolynomialLR", *this); }

double OneCycleLR::operator()(int64_t step, double) const {
  check();
  const double first = max_lr / div_factor;
  const double last = first / final_div_factor;
  const std::array<double, 4> corners = three_phase ? std::array<double, 4>{first, max_lr, first, last}
                                                    : std::array<double, 4>{first, max_lr, last, last};
  const CyclePlace place = place_in_cycle(*this, step);
  return between(*this, corners[place.phase], corners[place.phase + 1], place.share);
}

std::optional<double> OneCycleLR::momentum(int64_t step) const {
  check();
  if (!cycle_momentum) return std::nullopt;
  const std::array<double, 4> corners = {max_momentum, base_momentum, max_momentum, max_momentum};
  const CyclePlace place = place_in_cycle(*this, step);
  return between(*this, corners[place.phase], corners[place.phase + 1], place.share);
}
void OneCycleLR::check() const { check_options("OneCycleLR", *this); }

namespace {

/// How high the rate is at a step, as a share of the way from the lower to the upper bound.
double height_in_cycle(const CyclicLR& cycle, int64_t step) {
  const auto up = static_cast<double>(cycle.steps_up);
  const auto down = static_cast<double>(cycle.steps_down.value_or(cycle.steps_up));
  const double cycles = std::floor(static_cast<double>(step) / (up + down));
  const double place = static_cast<double>(step) - cycles * (up + down);
  const double height = place <= up ? place / up : (up + down - place) / down;
  switch (cycle.mode) {
    case CyclicLR::Mode::triangular:
      return height;
    case CyclicLR::Mode::triangular2:
      return height * std::pow(0.5, cycles);
    case CyclicLR::Mode::exp_range:
      break;
  }
  return height * std::pow(cycle.gamma, static_cast<double>(step));
}

}  // namespace

double CyclicLR::operator()(int64_t step, double) const {
  check();
  return base_lr + (max_lr - base_lr) * height_in_cycle(*this, step);
}

std::optional<double> CyclicLR::momentum(int64_t step) const {
  check();
  if (!cycle_momentum) return std::nullopt;
  return max_momentum - (max_momentum - base_momentum) * height_in_cycle(*this, step);
}
void CyclicLR::check() const { check_options("CyclicLR", *this); }

double LambdaLR::operator()(int64_t step, double base_lr) const {
  check();
  return base_lr * function(step);
}
void LambdaLR::check() const { pleat::check<ValueError>(bool(function), "LambdaLR: there is no function"); }

namespace {

/// The rate that applies, and the number of its steps.
std::pair<std::size_t, int64_t> place_in_sequence(const std::vector<int64_t>& milestones, int64_t step) {
  const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
  const auto index = static_cast<std::size_t>(next - milestones.begin());
  return {index, index == 0 ? step : step - milestones[index - 1]};
}

}  // namespace

double SequentialLR::operator()(int64_t step, double base_lr) const {
  check();
  const auto [index, own_step] = place_in_sequence(milestones, step);
  return rates[index](own_step, base_lr);
}
std::optional<double> SequentialLR::momentum(int64_t step) const {
  check();
  const auto [index, own_step] = place_in_sequence(milestones, step);
  return rates[index].momentum(own_step);
}
double SequentialLR::floor(int64_t step) const {
  const auto [index, own_step] = place_in_sequence(milestones, step);
  return rates[index].floor(own_step);
}
void SequentialLR::check() const {
  pleat::check<ValueError>(rates.size() == milestones.size() + 1,
                           "SequentialLR: {} rates need {} milestones between them, got {}", rates.size(),
                           rates.empty() ? 0 : rates.size() - 1, milestones.size());
  pleat::check<ValueError>(
      std::is_sorted(milestones.begin(), milestones.end()) && (milestones.empty() || milestones[0] >= 0),
      "SequentialLR: milestones must rise from 0 or more");
}

double ChainedLR::operator()(int64_t step, double base_lr) const {
  check();
  double lr = base_lr;
  for (const Rate& rate : rates) {
    pleat::check<ValueError>(rate.floor(step) == 0,
                             "ChainedLR: a rate falls to eta_min = {}, which would not be the least of the "
                             "product; set it to 0, or take a SequentialLR or warm_up",
                             rate.floor(step));
    lr *= base_lr == 0 ? 0 : rate(step, base_lr) / base_lr;
  }
  return lr;
}
std::optional<double> ChainedLR::momentum(int64_t step) const {
  std::optional<double> momentum;
  for (const Rate& rate : rates)
    if (const auto own = rate.momentum(step)) momentum = own;
  return momentum;
}
void ChainedLR::check() const { pleat::check<ValueError>(!rates.empty(), "ChainedLR: there are no rates"); }

double Rate::operator()(int64_t step, double base_lr) const {
  check<Error>(bool(lr_), "Rate: it was moved from; use the one that it was moved to");
  check_at_least("Rate", "step", step, 0);
  return lr_(step, base_lr);
}
void Rate::check_function(bool there_is_one) {
  check<ValueError>(there_is_one, "Rate: there is no function in it");
}

SequentialLR warm_up(int64_t steps, Rate after, double start_factor) {
  return {{LinearLR{.start_factor = start_factor, .steps = steps}, std::move(after)}, {steps}};
}

}  // namespace pleat::optim
