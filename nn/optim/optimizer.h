#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/state_dict.h"
#include "pleat/ops/update/step_count.h"

namespace pleat::dist {
class ShardedOptimizer;
}

namespace pleat::optim {

/// Parameters trained with the same options. Options are complete in each group; to vary one of them, copy
/// and change:
///
///   optim::SGDOptions slow{.lr = 0.01, .momentum = 0.9};
///   optim::SGDOptions fast = slow;
///   fast.lr = 0.1;
///   optim::SGD sgd{{{body.parameters(), slow}, {head.parameters(), fast}}};
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options;
};

/// What a Schedule made of a group's rate: from `base_lr` it computed `lr`.
struct ScheduledRate {
  double base_lr, lr;
  double factor = 1;      ///< of those who changed the rate beside it, as ReduceLROnPlateau
  uint64_t schedule = 0;  ///< the Schedule's number in this process; 0: this was loaded
};

class ParameterwiseOptimizer;

/// The base of all optimisers. Parameters are changed in place, off the tape; those without a
/// gradient are unchanged. An optimiser shares the parameters with their module, which may be moved
/// or destroyed. An optimiser can be moved, and a Schedule that refers to it follows. One that was
/// moved from throws Error.
class Optimizer {
 public:
  virtual ~Optimizer();

  /// One update. Throws ValueError, before anything is changed, when an option of a group is
  /// invalid, when no parameter has a gradient, or when backward gave a gradient to a parameter
  /// that neither a module lists nor an optimiser has (nn/module.h).
  void step();
  /// Makes the gradients of all parameters undefined.
  void zero_grad();

  virtual std::vector<Tensor> parameters() const = 0;
  virtual std::size_t num_groups() const = 0;

  /// The learning rate of a group. It can be set for one group or for all, as schedules do; an
  /// invalid rate throws ValueError. All functions of a group throw IndexError when there is no
  /// such group.
  double lr(std::size_t group = 0) const;
  void set_lr(std::size_t group, double lr);
  void set_lr(double lr);
  /// The momentum of a group, or its first beta where there are betas; none where the optimiser has
  /// neither.
  std::optional<double> momentum(std::size_t group = 0) const;
  void set_momentum(std::size_t group, double momentum);

  /// All state that training needs to continue with the same bits. Copies, not views.
  virtual nn::StateDict state_dict() const = 0;
  /// Throws ValueError with all problems, before anything is changed, when the state is not one of
  /// this optimiser with these parameters.
  void load_state_dict(const nn::StateDict& state);

 protected:
  explicit Optimizer(std::string name);
  Optimizer(Optimizer&& other) noexcept;
  Optimizer& operator=(Optimizer&& other) noexcept;

  const std::string& name() const { return name_; }
  /// Throws Error when the optimiser was moved from.
  void check_not_moved_from() const;
  /// Throws IndexError, naming the group, unless there is one.
  void check_group_exists(std::size_t group, std::size_t groups) const;

  // Checks and changes are separate, so that a MultiOptimizer can check all its parts before it
  // changes any.
  friend class MultiOptimizer;
  friend class dist::ShardedOptimizer;
  friend class Schedule;
  /// The optimiser that has the options of a group, and its number there. Throws IndexError when there is no
  /// such group.
  struct GroupPlace {
    ParameterwiseOptimizer& optimizer;
    std::size_t group;
  };
  virtual GroupPlace find(std::size_t group) const = 0;
  /// Of a group; none before its first Schedule. It is in the state, from which a schedule goes on.
  std::optional<ScheduledRate>& scheduled(std::size_t group) const;
  /// Throws ValueError when an option of any group is invalid.
  virtual void check_options() const = 0;
  virtual bool has_gradient() const = 0;
  /// `found`, unless empty: an int32 on each device with gradients. Where it is not 0 the update is
  /// skipped and not counted.
  virtual void update_parameters(const std::vector<Tensor>& found) = 0;
  /// The problems of a state, one line each, beginning with "\n  "; empty for none.
  virtual std::string state_problems(const nn::StateDict& state) const = 0;
  /// Loads a state without problems.
  virtual void take_state(const nn::StateDict& state) = 0;

 private:
  friend class OptimizerRef;
  friend class GradScaler;
  /// A step that the devices skip where `found` is not 0; the host does not know.
  void step_unless(const std::vector<Tensor>& found);

  std::string name_;
  std::shared_ptr<Optimizer*>
      place_;  ///< its address, null when it was destroyed; no pointer when it was moved from
};

/// A reference to an optimiser that follows when it is moved.
class OptimizerRef {
 public:
  OptimizerRef(Optimizer& optimizer);
  /// Throws Error, which begins with `user`, when the optimiser was destroyed.
  Optimizer& get(const char* user) const;
  /// Compares the optimisers, not their addresses.
  auto operator<=>(const OptimizerRef&) const = default;

 private:
  std::shared_ptr<Optimizer*> place_;
};

/// An optimiser that updates each parameter from its own gradient and history. Types: float64 parameters are
/// updated in float64, all others in float32, in which their state is kept, too. The state dictionary is
/// "param.0.step", "param.0.exp_avg", "group.0.lr" ... with parameters numbered through all groups.
class ParameterwiseOptimizer : public Optimizer {
 public:
  std::vector<Tensor> parameters() const override;
  std::size_t num_groups() const override;
  nn::StateDict state_dict() const override;

 protected:
  /// A parameter with its state.
  struct Entry {
    Tensor param;
    std::size_t group;
    /// In the order of the state names; undefined until the first update that needs it.
    std::vector<Tensor> state;
    std::vector<int64_t> before;  ///< updates made before the state existed; -1: it was loaded
    int64_t step = 0;             ///< updates that the host has counted
  };

  /// A state tensor of each parameter.
  struct State {
    const char* name;
    bool of_squares = false;  ///< never negative
  };

  ParameterwiseOptimizer(std::string name, std::vector<State> states)
      : Optimizer(std::move(name)), states_(std::move(states)) {}

  /// Checks and appends. Throws ValueError when there are none, or when one is a duplicate,
  /// undefined, or no leaf.
  void add_parameters(const std::vector<Tensor>& params);

  GroupPlace find(std::size_t group) const override;
  void check_options() const override;
  bool has_gradient() const override;
  void update_parameters(const std::vector<Tensor>& found) override;
  std::string state_problems(const nn::StateDict& state) const override;
  void take_state(const nn::StateDict& state) override;

  /// The options of a group that schedules change.
  struct Rates {
    double lr;
    std::optional<double> momentum;
    const char* momentum_name = "momentum";  ///< in a state, so that a beta is not loaded as a momentum
  };
  virtual Rates rates(std::size_t group) const = 0;
  /// Throws ValueError when the options of the group with these rates are invalid.
  virtual void check_rates(std::size_t group, const Rates& rates) const = 0;
  /// Sets them without a check, a momentum only where there is one.
  virtual void put_rates(std::size_t group, const Rates& rates) = 0;

  void set_rates(std::size_t group, const Rates& rates);

  virtual void check_parameter(const Tensor&) const {}
  /// Whether the update of an element needs nothing of the parameter's other elements, so that several
  /// processes can share a parameter (dist::ShardedOptimizer).
  virtual bool is_elementwise() const { return false; }
  /// A parameter that has a gradient.
  struct ParamStep {
    Entry& entry;
    Tensor grad;
    ops::StepCount count;
  };
  /// One update of all these parameters together, which a GPU can do in one launch. Counts the
  /// step, or skips it, as `count` tells.
  virtual void update(std::span<const ParamStep> steps) = 0;
  /// Whether an update under the group's options uses this state.
  virtual bool needs_state(std::size_t, std::size_t) const { return true; }

  /// A state of the entry, filled with `value` when it did not exist.
  Tensor& state_of(Entry& entry, std::size_t state, double value = 0) const;

 private:
  friend class Optimizer;
  friend class dist::ShardedOptimizer;
  /// Trains these, parts of the parameters' memory, one for each. The state stays.
  void put_parameters(const std::vector<Tensor>& parts);

  bool lacks_state(const Entry& entry) const;
  /// Throws Error in a CUDA graph, whose replays would make the state again.
  void refuse_first_step() const;
  /// The count of updates on a device.
  int64_t* made_on(Device device, std::size_t entry);
  /// The number of updates of each parameter; waits for devices that count them.
  std::vector<int64_t> steps() const;
  /// Copies the counts of the devices to the host.
  void know_steps();

  std::vector<State> states_;
  std::vector<Entry> entries_;
  /// On each device that counts: int64, one for each entry, updates beside those that the host has
  /// counted.
  std::vector<Tensor> made_;
  std::vector<std::optional<ScheduledRate>> scheduled_;  ///< of each group
};

/// An optimiser with options of its kind for each group.
template <class Options>
class OptimizerWith : public ParameterwiseOptimizer {
 public:
  using Group = ParamGroup<Options>;

  /// The options of a group, to read and to change; the next step checks them.
  Options& options(std::size_t group = 0) {
    check_group_exists(group, options_.size());
    return options_[group];
  }
  const Options& options(std::size_t group = 0) const {
    check_group_exists(group, options_.size());
    return options_[group];
  }

 protected:
  using ParameterwiseOptimizer::ParameterwiseOptimizer;

  /// Throws ValueError when they are invalid.
  virtual void check_options_of_group(const Options& options) const = 0;

  Rates rates(std::size_t group) const override {
    const Options& o = options(group);
    if constexpr (requires { o.momentum; })
      return {o.lr, o.momentum};
    else if constexpr (requires { o.betas; })
      return {o.lr, o.betas[0], "beta1"};
    else
      return {o.lr, std::nullopt};
  }
  void check_rates(std::size_t group, const Rates& rates) const override {
    Options changed = options(group);
    put(changed, rates);
    check_options_of_group(changed);
  }
  void put_rates(std::size_t group, const Rates& rates) override { put(options(group), rates); }

  void add_groups(std::vector<Group> groups) {
    for (Group& group : groups) {
      check_options_of_group(group.options);
      options_.push_back(std::move(group.options));
      add_parameters(group.params);
    }
  }

 private:
  static void put(Options& options, const Rates& rates) {
    options.lr = rates.lr;
    if constexpr (requires { options.momentum; })
      options.momentum = rates.momentum.value_or(options.momentum);
    else if constexpr (requires { options.betas; })
      options.betas[0] = rates.momentum.value_or(options.betas[0]);
  }

  std::vector<Options> options_;
};

}  // namespace pleat::optim
