#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/optim/optimizer.h"
#include "pleat/nn/state_dict.h"

/// Learning rates as functions of the step. A rate is a small value; a Schedule applies one to an
/// optimiser:
///
///   optim::Schedule schedule{sgd, optim::OneCycleLR{.max_lr = 0.2, .total_steps = epochs * loader.size()}};
///   ... sgd.step(); schedule.step();
///
/// A step is an iteration or an epoch, whichever calls step(). Formulas are PyTorch's. Rates throw
/// ValueError for invalid options (counts below 1, anything negative or not finite) when they are
/// given to a Schedule or called.

namespace pleat::optim {

/// The rate falls to `gamma` of itself every `step_size` steps.
struct StepLR {
  Required<int64_t> step_size;
  double gamma = 0.1;
  double operator()(int64_t step, double base_lr) const;
};

/// The same at each milestone; a milestone that is listed twice counts twice.
struct MultiStepLR {
  Required<IntegerList> milestones;
  double gamma = 0.1;
  double operator()(int64_t step, double base_lr) const;
};

/// The rate falls to `gamma` of itself every step.
struct ExponentialLR {
  Required<double> gamma;
  double operator()(int64_t step, double base_lr) const;
};

/// Half a cosine from the base rate to `eta_min` in `steps` steps, then back up. (Loshchilov and Hutter,
/// arXiv:1608.03983.)
struct CosineAnnealingLR {
  Required<int64_t> steps;
  double eta_min = 0;
  double operator()(int64_t step, double base_lr) const;
  double floor(int64_t) const { return eta_min; }
};

/// The same with restarts: after `first` steps, then each time after `mult` times as many.
struct CosineAnnealingWarmRestarts {
  Required<int64_t> first;
  int64_t mult = 1;
  double eta_min = 0;
  double operator()(int64_t step, double base_lr) const;
  double floor(int64_t) const { return eta_min; }
};

/// `factor` of the base rate for `steps` steps.
struct ConstantLR {
  double factor = 1.0 / 3;
  int64_t steps = 5;
  double operator()(int64_t step, double base_lr) const;
};

/// From `start_factor` to `end_factor` of the base rate in `steps` steps: a warm-up when the first is
/// smaller.
struct LinearLR {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t steps = 5;
  double operator()(int64_t step, double base_lr) const;
};

/// base_lr * (1 - step / steps)^power.
struct PolynomialLR {
  int64_t steps = 5;
  double power = 1;
  double operator()(int64_t step, double base_lr) const;
};

/// Up to `max_lr` in the share `pct_start` of the steps, then down to almost 0; the momentum goes
/// the other way. (Smith and Topin, arXiv:1708.07120.) Ignores the base rate. A step after
/// `total_steps` throws ValueError.
struct OneCycleLR {
  Required<double> max_lr;
  Required<int64_t> total_steps;
  double pct_start = 0.3;
  bool linear = false;  ///< straight lines instead of cosines
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last one is the first / final_div_factor
  bool three_phase = false;  ///< three phases: up, down to the first rate in as many steps, then to the last
  double operator()(int64_t step, double base_lr) const;
  std::optional<double> momentum(int64_t step) const;
};

/// Up from `base_lr` to `max_lr` in `steps_up` steps, down again in `steps_down`, and so on; the momentum
/// goes the other way. (Smith, arXiv:1506.01186.) Ignores the group's rate.
struct CyclicLR {
  enum class Mode {
    triangular,   ///< all cycles are as high
    triangular2,  ///< each is half as high as the one before
    exp_range     ///< the height falls to `gamma` of itself each step
  };
  Required<double> base_lr;
  Required<double> max_lr;
  int64_t steps_up = 2000;
  std::optional<int64_t> steps_down = std::nullopt;  ///< none: as many as up
  Mode mode = Mode::triangular;
  double gamma = 1;
  bool cycle_momentum = true;
  double base_momentum = 0.8;
  double max_momentum = 0.9;
  double operator()(int64_t step, double base_lr) const;
  std::optional<double> momentum(int64_t step) const;
};

/// base_lr * function(step).
struct LambdaLR {
  std::function<double(int64_t)> function;
  double operator()(int64_t step, double base_lr) const;
};

/// Any of these rates, or a function `double(int64_t step, double base_lr)`.
class Rate {
 public:
  /// Throws ValueError when the rate's options are invalid.
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, Rate> && std::is_invocable_r_v<double, R, int64_t, double>)
      Rate(R rate) {
    if constexpr (std::is_pointer_v<R> || requires { rate.target_type(); }) check_function(rate != nullptr);
    if constexpr (std::is_aggregate_v<R>) rate(0, 1);  // checks the options
    if constexpr (requires { rate.momentum(int64_t{}); })
      momentum_ = [rate](int64_t step) { return rate.momentum(step); };
    if constexpr (requires { rate.floor(int64_t{}); })
      floor_ = [rate](int64_t step) { return rate.floor(step); };
    lr_ = std::move(rate);
  }

  /// Throws ValueError for a step below 0, Error for a Rate that was moved from.
  double operator()(int64_t step, double base_lr) const;
  std::optional<double> momentum(int64_t step) const { return momentum_ ? momentum_(step) : std::nullopt; }
  /// The `eta_min` to which it falls at this step; 0 where there is none.
  double floor(int64_t step) const { return floor_ ? floor_(step) : 0; }

 private:
  static void check_function(bool there_is_one);

  std::function<double(int64_t, double)> lr_;
  std::function<std::optional<double>(int64_t)> momentum_;
  std::function<double(int64_t)> floor_;
};

/// One after the other: rates[i] counts its steps from milestones[i - 1] on.
struct SequentialLR {
  std::vector<Rate> rates;
  std::vector<int64_t> milestones;
  double operator()(int64_t step, double base_lr) const;
  std::optional<double> momentum(int64_t step) const;
  double floor(int64_t step) const;
};

/// All rates together: the product of their factors; the momentum of the last rate that has one. Throws
/// ValueError for a rate with an `eta_min`, which would not be the least of the product.
struct ChainedLR {
  std::vector<Rate> rates;
  double operator()(int64_t step, double base_lr) const;
  std::optional<double> momentum(int64_t step) const;
};

/// A linear warm-up from `start_factor` in `steps` steps, then `after`, which counts its steps from there on:
///
///   Schedule schedule(optimizer, warm_up(500, CosineAnnealingLR{.steps = 9500}));
SequentialLR warm_up(int64_t steps, Rate after, double start_factor = 0.01);

/// Sets an optimiser's rates at construction and at each step(). The base rate of a group is its
/// rate before the construction. Refers to the optimiser, and follows it when it is moved; throws
/// Error when it was destroyed.
///
/// What others do to a rate between two steps, as ReduceLROnPlateau or set_lr(), stays: a rate that is half
/// of what the schedule made it is half of it from then on, above an `eta_min`, as PyTorch's schedules have
/// it. A rate below `eta_min` goes back to that. Two schedules of one optimiser would undo each other: write
/// a ChainedLR (their product) or a SequentialLR. When a second one was made, the first throws Error at its
/// next step().
class Schedule {
 public:
  /// Throws ValueError when the rate sets a momentum and the optimiser has none.
  Schedule(Optimizer& optimizer, Rate rate);
  /// One for each group. Throws ValueError for another number.
  Schedule(Optimizer& optimizer, std::vector<Rate> rates);
  Schedule(Schedule&&) = default;
  Schedule& operator=(Schedule&&) = default;

  /// Throws ValueError, before anything is changed, when the optimiser does not accept a rate, when a
  /// momentum that this schedule sets was set otherwise, or a rate that is `eta_min` or 0, which is no
  /// factor's doing; Error when another Schedule was made, or a state of another step was loaded into the
  /// optimiser.
  void step();
  /// The number of steps made. Set it to go on with an optimiser whose state was loaded, before or after the
  /// construction: base rates and the factors of others are then those of the saved run. Throws ValueError,
  /// before anything is changed, when the saved rates are not this schedule's at that step.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);

  /// "steps", "base_lr" and "lr", for checkpoints; the factors of others are in the optimiser's state.
  /// Loading sets the rates, too, before or after the optimiser loads its own; throws ValueError with all
  /// problems, and when this schedule's rate at that step is not "lr": it has other options. So a run goes on
  /// for longer than was planned under a rate that has no length (StepLR, MultiStepLR, ExponentialLR ...);
  /// of one that has, another length is refused, and the same does after its end what it says of itself.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  /// A group's rate, and what a schedule made of it.
  struct Found {
    double lr;
    ScheduledRate by;
  };
  static bool is_loaded(const std::vector<Found>& found) {
    return !found.empty() && found.front().by.schedule == 0;
  }

  /// The rates of the groups. Throws ValueError for what an optimiser does not accept.
  std::vector<double> rates_at(int64_t steps, const std::vector<double>& base_lrs) const;
  /// Of the groups; empty where no schedule made the rates.
  std::vector<Found> found() const;
  /// Those that were loaded, or were there at the construction: of a run that may go on.
  std::vector<Found> saved_rates() const;
  std::vector<double> ones() const { return std::vector<double>(rates_.size(), 1); }
  /// Of those who changed the rates that a schedule made at `steps`.
  std::vector<double> factors(int64_t steps, const std::vector<Found>& found) const;
  /// Throws Error unless these are what this schedule made.
  void check_own(const std::vector<Found>& found) const;
  /// Whether the schedule that made these had made `steps` steps and has this one's options.
  bool fits(int64_t steps, const std::vector<Found>& found) const;
  /// The rates are those of `from`, which fit.
  void go_on(int64_t steps, const std::vector<double>& base_lrs, const std::vector<Found>& from);
  void set_rates(int64_t steps, const std::vector<double>& base_lrs, const std::vector<double>& factors);

  OptimizerRef optimizer_;
  std::vector<Rate> rates_;
  std::vector<double> base_lrs_;
  int64_t steps_ = 0;
  uint64_t number_;
  std::vector<Found> before_;  ///< what was there at the construction; empty after the first step
};

struct ReduceLROnPlateauOptions {
  Required<bool> maximize;  ///< whether the metric should rise, as an accuracy, or fall, as a loss
  double factor = 0.1;
  int64_t patience = 10;  ///< steps without improvement before a cut
  double threshold = 1e-4;
  bool absolute = false;  ///< `threshold` is an absolute difference, not a share
  int64_t cooldown = 0;   ///< steps after a cut that are not counted
  RealList min_lr = 0;    ///< one for all groups, or one each
  double eps = 1e-8;      ///< smaller changes of the rate are not made
};

/// Cuts the rates when a metric has stopped improving. Refers to the optimiser as a Schedule does.
class ReduceLROnPlateau {
 public:
  using Options = ReduceLROnPlateauOptions;
  ReduceLROnPlateau(Optimizer& optimizer, Options options);

  /// Takes the metric of the last epoch. A NaN is no improvement.
  void step(double metric);
  double best() const { return best_; }

  /// "best", "bad_steps" and "cooling", for checkpoints; the rates are in the optimiser's state. Loading
  /// throws ValueError with all problems.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  bool maximize() const { return options_.maximize.get(); }
  bool improves(double metric) const;

  OptimizerRef optimizer_;
  Options options_;
  double best_;
  int64_t bad_steps_ = 0;
  int64_t cooling_ = 0;
};

}  // namespace pleat::optim
