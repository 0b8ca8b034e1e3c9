#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "pleat/core/base/format.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/nn/option_checks.h"

namespace pleat::optim {
namespace {

double cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Where a one-cycle schedule is: between corner `phase` and the next, `share` of the way.
struct CyclePlace {
  std::size_t phase;
  double share;
};

CyclePlace place_in_cycle(const OneCycleLR& cycle, int64_t step) {
  check_at_least("OneCycleLR", "total_steps", cycle.total_steps, 1);
  check_positive("OneCycleLR", "max_lr", cycle.max_lr);
  check_positive("OneCycleLR", "div_factor", cycle.div_factor);
  check_positive("OneCycleLR", "final_div_factor", cycle.final_div_factor);
  check_share("OneCycleLR", "pct_start", cycle.pct_start);
  check_fraction("OneCycleLR", "base_momentum", cycle.base_momentum);
  check_fraction("OneCycleLR", "max_momentum", cycle.max_momentum);
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
  check_at_least("StepLR", "step_size", step_size, 1);
  check_at_least_0("StepLR", "gamma", gamma);
  return base_lr * std::pow(gamma, static_cast<double>(step / step_size));
}

double MultiStepLR::operator()(int64_t step, double base_lr) const {
  for (const int64_t milestone : milestones.get()) check_at_least("MultiStepLR", "a milestone", milestone, 0);
  check_at_least_0("MultiStepLR", "gamma", gamma);
  const auto passed = std::ranges::count_if(milestones.get(), [=](int64_t m) { return m <= step; });
  return base_lr * std::pow(gamma, static_cast<double>(passed));
}

double ExponentialLR::operator()(int64_t step, double base_lr) const {
  check_at_least_0("ExponentialLR", "gamma", gamma);
  return base_lr * std::pow(gamma, static_cast<double>(step));
}

double CosineAnnealingLR::operator()(int64_t step, double base_lr) const {
  check_at_least("CosineAnnealingLR", "steps", steps, 1);
  check_at_least_0("CosineAnnealingLR", "eta_min", eta_min);
  return cosine(base_lr, eta_min, static_cast<double>(step) / static_cast<double>(steps.get()));
}

double CosineAnnealingWarmRestarts::operator()(int64_t step, double base_lr) const {
  check_at_least("CosineAnnealingWarmRestarts", "first", first, 1);
  check_at_least("CosineAnnealingWarmRestarts", "mult", mult, 1);
  check_at_least_0("CosineAnnealingWarmRestarts", "eta_min", eta_min);
  int64_t length = first;
  if (mult == 1) step %= length;
  while (step >= length) {
    step -= length;
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    length = length > most / mult ? most : length * mult;  // longer than any count of steps
  }
  return cosine(base_lr, eta_min, static_cast<double>(step) / static_cast<double>(length));
}

double ConstantLR::operator()(int64_t step, double base_lr) const {
  check_at_least("ConstantLR", "steps", steps, 0);
  check_at_least_0("ConstantLR", "factor", factor);
  return step < steps ? base_lr * factor : base_lr;
}

double LinearLR::operator()(int64_t step, double base_lr) const {
  check_at_least("LinearLR", "steps", steps, 1);
  check_at_least_0("LinearLR", "start_factor", start_factor);
  check_at_least_0("LinearLR", "end_factor", end_factor);
  const double share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return base_lr * (start_factor + (end_factor - start_factor) * share);
}

double PolynomialLR::operator()(int64_t step, double base_lr) const {
  check_at_least("PolynomialLR", "steps", steps, 1);
  check_positive("PolynomialLR", "power", power);
  const double left = 1 - static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return base_lr * std::pow(left, power);
}

double OneCycleLR::operator()(int64_t step, double) const {
  const CyclePlace place = place_in_cycle(*this, step);
  const double first = max_lr / div_factor;
  const double last = first / final_div_factor;
  const std::array<double, 4> corners = three_phase ? std::array<double, 4>{first, max_lr, first, last}
                                                    : std::array<double, 4>{first, max_lr, last, last};
  return between(*this, corners[place.phase], corners[place.phase + 1], place.share);
}

std::optional<double> OneCycleLR::momentum(int64_t step) const {
  if (!cycle_momentum) return std::nullopt;
  const CyclePlace place = place_in_cycle(*this, step);
  const std::array<double, 4> corners = {max_momentum, base_momentum, max_momentum, max_momentum};
  return between(*this, corners[place.phase], corners[place.phase + 1], place.share);
}

namespace {

/// How high the rate is at a step, as a share of the way from the lower to the upper bound.
double height_in_cycle(const CyclicLR& cycle, int64_t step) {
  check_at_least("CyclicLR", "steps_up", cycle.steps_up, 1);
  check_at_least("CyclicLR", "steps_down", cycle.steps_down.value_or(1), 1);
  check_share("CyclicLR", "gamma", cycle.gamma);
  check_at_least_0("CyclicLR", "base_lr", cycle.base_lr);
  check_at_least_0("CyclicLR", "max_lr", cycle.max_lr);
  check_fraction("CyclicLR", "base_momentum", cycle.base_momentum);
  check_fraction("CyclicLR", "max_momentum", cycle.max_momentum);
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
  return base_lr + (max_lr - base_lr) * height_in_cycle(*this, step);
}

std::optional<double> CyclicLR::momentum(int64_t step) const {
  if (!cycle_momentum) return std::nullopt;
  return max_momentum - (max_momentum - base_momentum) * height_in_cycle(*this, step);
}

double LambdaLR::operator()(int64_t step, double base_lr) const {
  check<ValueError>(bool(function), "LambdaLR: there is no function");
  return base_lr * function(step);
}

namespace {

/// The rate that applies, and the number of its steps.
std::pair<const Rate&, int64_t> place_in_sequence(const SequentialLR& all, int64_t step) {
  const auto& [rates, milestones] = all;
  check<ValueError>(rates.size() == milestones.size() + 1,
                    "SequentialLR: {} rates need {} milestones between them, got {}", rates.size(),
                    rates.empty() ? 0 : rates.size() - 1, milestones.size());
  check<ValueError>(
      std::is_sorted(milestones.begin(), milestones.end()) && (milestones.empty() || milestones[0] >= 0),
      "SequentialLR: milestones must rise from 0 or more");
  const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
  const auto index = static_cast<std::size_t>(next - milestones.begin());
  return {rates[index], index == 0 ? step : step - milestones[index - 1]};
}

}  // namespace

double SequentialLR::operator()(int64_t step, double base_lr) const {
  const auto [rate, own_step] = place_in_sequence(*this, step);
  return rate(own_step, base_lr);
}
std::optional<double> SequentialLR::momentum(int64_t step) const {
  const auto [rate, own_step] = place_in_sequence(*this, step);
  return rate.momentum(own_step);
}
double SequentialLR::floor(int64_t step) const {
  const auto [rate, own_step] = place_in_sequence(*this, step);
  return rate.floor(own_step);
}

double ChainedLR::operator()(int64_t step, double base_lr) const {
  check<ValueError>(!rates.empty(), "ChainedLR: there are no rates");
  double lr = base_lr;
  for (const Rate& rate : rates) {
    check<ValueError>(rate.floor(step) == 0,
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
