#include "pleat/nn/optim/schedule.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"

namespace pleat::optim {
namespace {

std::atomic<uint64_t> schedules = 0;

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

/// `factor` of a rate's height above its floor.
double scaled(double lr, double factor, double floor) {
  return factor == 1 ? lr : floor + factor * (lr - floor);
}

}  // namespace

Schedule::Schedule(Optimizer& optimizer, Rate rate)
    : Schedule(optimizer, std::vector<Rate>(optimizer.num_groups(), rate)) {}

Schedule::Schedule(Optimizer& optimizer, std::vector<Rate> rates)
    : optimizer_(optimizer), rates_(std::move(rates)), number_(++schedules) {
  check<ValueError>(rates_.size() == optimizer.num_groups(), "Schedule: {} rates for {} parameter groups",
                    rates_.size(), optimizer.num_groups());
  for (std::size_t g = 0; g < rates_.size(); ++g) base_lrs_.push_back(optimizer.lr(g));
  before_ = found();
  set_rates(0, base_lrs_, ones());
}

std::vector<Schedule::Found> Schedule::found() const {
  Optimizer& optimizer = optimizer_.get("Schedule");
  std::vector<Found> found;
  for (std::size_t g = 0; g < rates_.size(); ++g)
    if (const auto& by = optimizer.scheduled(g)) found.push_back({optimizer.lr(g), *by});
  if (found.size() < rates_.size()) found.clear();
  return found;
}

std::vector<Schedule::Found> Schedule::saved_rates() const {
  std::vector<Found> now = found();
  return is_loaded(now) ? now : before_;
}

bool Schedule::fits(int64_t steps, const std::vector<Found>& found) const {
  if (found.empty()) return false;
  std::vector<double> base_lrs;
  for (const Found& group : found) base_lrs.push_back(group.by.base_lr);
  const std::vector<double> lrs = rates_at(steps, base_lrs);
  for (std::size_t g = 0; g < found.size(); ++g)
    if (!is_near(lrs[g], found[g].by.lr)) return false;
  return true;
}

void Schedule::check_own(const std::vector<Found>& found) const {
  const std::vector<double> lrs = rates_at(steps_, base_lrs_);
  Optimizer& optimizer = optimizer_.get("Schedule");
  for (std::size_t g = 0; g < found.size(); ++g) {
    const ScheduledRate& by = found[g].by;
    check<Error>(
        by.schedule == number_ || by.schedule == 0,
        "Schedule: another Schedule was made for this optimiser, and each would undo the other; write "
        "both as one: ChainedLR{{{{a, b}}}} is their product, SequentialLR and warm_up are one after the "
        "other");
    check<Error>(
        by.schedule == number_ || (is_near(by.base_lr, base_lrs_[g]) && is_near(by.lr, lrs[g])),
        "Schedule: the optimiser's state was loaded, in which a schedule had made the rate {} of {}; "
        "after {} steps this one makes {} of {}; load the schedule's state, too, or call set_steps() "
        "with the steps that were made",
        by.lr, by.base_lr, steps_, lrs[g], base_lrs_[g]);
    const auto momentum = rates_[g].momentum(steps_);
    check<ValueError>(
        !momentum || is_near(*momentum, *optimizer.momentum(g)),
        "Schedule: somebody set the momentum of group {} to {}, and the schedule would undo it; "
        "OneCycleLR and CyclicLR leave it alone with .cycle_momentum = false",
        g, *optimizer.momentum(g));
  }
}

std::vector<double> Schedule::factors(int64_t steps, const std::vector<Found>& found) const {
  std::vector<double> factors;
  for (std::size_t g = 0; g < found.size(); ++g) {
    const auto& [lr, by] = found[g];
    const double floor = rates_[g].floor(steps);
    const bool keeps = lr == scaled(by.lr, by.factor, floor) || (by.lr == floor && lr < floor);
    check<ValueError>(
        keeps || by.lr != floor,
        "Schedule: somebody set the rate of group {} to {} where the schedule made it {}, of which "
        "no factor makes that; make a new Schedule, which begins with the rate that was set",
        g, lr, by.lr);
    factors.push_back(keeps ? by.factor : std::max(0.0, (lr - floor) / (by.lr - floor)));
  }
  return factors;
}

void Schedule::go_on(int64_t steps, const std::vector<double>& base_lrs, const std::vector<Found>& from) {
  set_rates(steps, base_lrs, factors(steps, from));
  Optimizer& optimizer = optimizer_.get("Schedule");
  for (std::size_t g = 0; g < from.size(); ++g) optimizer.set_lr(g, from[g].lr);  // may be below `eta_min`
}

void Schedule::step() {
  const std::vector<Found> now = found();
  check<Error>(
      !now.empty(),
      "Schedule: the optimiser's state was loaded, which is of a run without a schedule; call set_steps() "
      "with the steps that this one has made, or 0");
  check_own(now);
  set_rates(checked_add(steps_, 1, "Schedule"), base_lrs_, factors(steps_, now));
}

void Schedule::set_steps(int64_t steps) {
  const std::vector<Found> saved = saved_rates();
  if (fits(steps, saved)) {
    std::vector<double> base_lrs;
    for (const Found& group : saved) base_lrs.push_back(group.by.base_lr);
    return go_on(steps, base_lrs, saved);
  }
  if (is_loaded(saved))
    fail<ValueError>(
        "Schedule: the optimiser's state was loaded, in which a schedule had made the rate {} of {}; "
        "this one does not at step {}: it has other options, or the run had made another number of steps; "
        "a new schedule begins at step 0, without set_steps()",
        saved[0].by.lr, saved[0].by.base_lr, steps);
  const std::vector<Found> now = found();
  check_own(now);
  set_rates(steps, base_lrs_, now.empty() ? ones() : factors(steps_, now));
}

std::vector<double> Schedule::rates_at(int64_t steps, const std::vector<double>& base_lrs) const {
  check_at_least("Schedule", "steps", steps, 0);
  const Optimizer& optimizer = optimizer_.get("Schedule");
  std::vector<double> lrs;
  for (std::size_t g = 0; g < rates_.size(); ++g) {
    lrs.push_back(rates_[g](steps, base_lrs[g]));
    check_at_least_0("Schedule", fmt::format("the rate of group {} at step {}", g, steps), lrs[g]);
    const auto momentum = rates_[g].momentum(steps);
    if (!momentum) continue;
    check<ValueError>(
        optimizer.momentum(g).has_value(),
        "Schedule: the rate sets a momentum, which the optimiser does not have; OneCycleLR and CyclicLR "
        "leave it alone with .cycle_momentum = false");
    check_share("Schedule", fmt::format("the momentum of group {} at step {}", g, steps), *momentum);
  }
  return lrs;
}

void Schedule::set_rates(int64_t steps, const std::vector<double>& base_lrs,
                         const std::vector<double>& factors) {
  Optimizer& optimizer = optimizer_.get("Schedule");
  const std::vector<double> lrs = rates_at(steps, base_lrs);
  std::vector<double> all;
  for (std::size_t g = 0; g < rates_.size(); ++g) {
    all.push_back(scaled(lrs[g], factors[g], rates_[g].floor(steps)));
    check_at_least_0("Schedule", fmt::format("the rate of group {} at step {}", g, steps), all[g]);
  }
  for (std::size_t g = 0; g < rates_.size(); ++g) {
    optimizer.set_lr(g, all[g]);
    if (const auto momentum = rates_[g].momentum(steps)) optimizer.set_momentum(g, *momentum);
    optimizer.scheduled(g) = {
        .base_lr = base_lrs[g], .lr = lrs[g], .factor = factors[g], .schedule = number_};
  }
  if (steps > 0) before_.clear();
  base_lrs_ = base_lrs;
  steps_ = steps;
}

nn::StateDict Schedule::state_dict() const {
  optimizer_.get("Schedule");
  return {{"steps", scalar(steps_, int64)},
          {"base_lr", from_vector(base_lrs_)},
          {"lr", from_vector(rates_at(steps_, base_lrs_))}};
}

void Schedule::load_state_dict(const nn::StateDict& state) {
  const nn::StateDict own = state_dict();
  nn::copy_state("Schedule", own, state);
  const std::vector<double> base_lrs = own.at("base_lr").to_vector<double>();
  for (const double lr : base_lrs) check_at_least_0("Schedule", "base_lr", lr);
  const auto steps = own.at("steps").item<int64_t>();
  const std::vector<double> saved = own.at("lr").to_vector<double>();
  const std::vector<double> lrs = rates_at(steps, base_lrs);
  for (std::size_t g = 0; g < lrs.size(); ++g)
    check<ValueError>(is_near(lrs[g], saved[g]),
                      "Schedule: its rate at step {} is {}, that of the saved run was {}: it has other "
                      "options, perhaps another number of steps in all; take the same options, or begin a "
                      "new run with the saved weights: load the network's state alone",
                      steps, lrs[g], saved[g]);
  const std::vector<Found> from = saved_rates();
  if (fits(steps, from)) return go_on(steps, base_lrs, from);
  set_rates(steps, base_lrs, is_loaded(from) ? factors(steps, from) : ones());
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, Options options)
    : optimizer_(optimizer),
      options_(std::move(options)),
      best_(maximize() ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  const char* const op = "ReduceLROnPlateau";
  check<ValueError>(options_.factor > 0 && options_.factor < 1,
                    "ReduceLROnPlateau: factor must be in (0, 1), got {}", options_.factor);
  check_at_least(op, "patience", options_.patience, 0);
  check_at_least(op, "cooldown", options_.cooldown, 0);
  check<ValueError>(options_.min_lr.size() == 1 || options_.min_lr.size() == optimizer.num_groups(),
                    "ReduceLROnPlateau: {} min_lr for {} parameter groups", options_.min_lr.size(),
                    optimizer.num_groups());
  for (const double value : options_.min_lr) check_at_least_0(op, "min_lr", value);
  check_at_least_0(op, "threshold", options_.threshold);
  check_at_least_0(op, "eps", options_.eps);
}

bool ReduceLROnPlateau::improves(double metric) const {
  const double margin = options_.absolute ? options_.threshold : options_.threshold * std::abs(best_);
  if (std::isinf(best_)) return maximize() ? metric > best_ : metric < best_;
  return maximize() ? metric > best_ + margin : metric < best_ - margin;
}

void ReduceLROnPlateau::step(double metric) {
  Optimizer& optimizer = optimizer_.get("ReduceLROnPlateau");
  if (improves(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return;
  for (std::size_t g = 0; g < optimizer.num_groups(); ++g) {
    const double least = options_.min_lr[options_.min_lr.size() == 1 ? 0 : g];
    const double lr = std::max(optimizer.lr(g) * options_.factor, least);
    if (optimizer.lr(g) - lr > options_.eps) optimizer.set_lr(g, lr);
  }
  cooling_ = options_.cooldown;
  bad_steps_ = 0;
}

nn::StateDict ReduceLROnPlateau::state_dict() const {
  optimizer_.get("ReduceLROnPlateau");
  return {{"best", scalar(best_, float64)},
          {"bad_steps", scalar(bad_steps_, int64)},
          {"cooling", scalar(cooling_, int64)}};
}

void ReduceLROnPlateau::load_state_dict(const nn::StateDict& state) {
  const nn::StateDict own = state_dict();
  nn::copy_state("ReduceLROnPlateau", own, state);
  const double best = own.at("best").item();
  const auto bad_steps = own.at("bad_steps").item<int64_t>();
  const auto cooling = own.at("cooling").item<int64_t>();
  check<ValueError>(!std::isnan(best), "ReduceLROnPlateau: best must be a number, got {}", best);
  check_at_least("ReduceLROnPlateau", "bad_steps", bad_steps, 0);
  check_at_least("ReduceLROnPlateau", "cooling", cooling, 0);
  best_ = best;
  bad_steps_ = bad_steps;
  cooling_ = cooling;
}

}  // namespace pleat::optim
