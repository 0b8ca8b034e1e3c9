#include "pleat/nn/optim/optimizer.h"

#include <algorithm>
#include <set>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"
#include "pleat/core/record_function.h"

namespace pleat::optim {
namespace {

std::string param_key(std::size_t index, const std::string& what) {
  return fmt::format("param.{}.{}", index, what);
}
std::string group_key(std::size_t index, const std::string& what) {
  return fmt::format("group.{}.{}", index, what);
}

/// A tensor in the parameter's layout, of the type in which it is updated.
Tensor new_state(const Tensor& param) {
  return empty_as({&param, 1}, param.shape(), compute_dtype(param.dtype()));
}

}  // namespace

void Optimizer::step() {
  const RecordFunction range(name_, ".step");
  check_options();
  update_parameters();
}

void Optimizer::zero_grad() {
  const RecordFunction range(name_, ".zero_grad");
  for (const Tensor& param : parameters()) param.set_grad({});
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < num_groups(); ++group) set_lr(group, lr);
}

void Optimizer::load_state_dict(const nn::StateDict& state) {
  const std::string problems = state_problems(state);
  check<ValueError>(problems.empty(), "{}: the state does not fit{}", name_, problems);
  take_state(state);
}

void ParameterwiseOptimizer::add_parameters(const std::vector<Tensor>& params) {
  check<ValueError>(!params.empty(), "{}: got no parameters; a module lists its own in members()", name());
  std::vector<Entry> added;
  std::set<const TensorImpl*> known;
  for (const Entry& entry : entries_) known.insert(&entry.param.impl());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    check<ValueError>(param.defined(), "{}: parameter {} is undefined", name(), i);
    check<DTypeError>(is_floating(param.dtype()), "{}: parameters must be floating, number {} is {}", name(),
                      i, param.describe());
    check<ValueError>(param.is_leaf(),
                      "{}: parameter {}, {}, was computed by a function; only leaves can be trained", name(),
                      i, param.describe());
    check<ValueError>(known.insert(&param.impl()).second, "{}: parameter {}, {}, is given twice", name(), i,
                      param.describe());
    check_parameter(param);
    added.push_back({param, groups_, 0, std::vector<Tensor>(state_names_.size())});
  }
  entries_.insert(entries_.end(), added.begin(), added.end());
  ++groups_;
}

void ParameterwiseOptimizer::check_parameter(const Tensor&) const {}

void ParameterwiseOptimizer::check_options() const {
  for (std::size_t group = 0; group < groups_; ++group) check_group(group);
}

void ParameterwiseOptimizer::update_parameters() {
  std::vector<Turn> turns;
  for (Entry& entry : entries_) {
    const Tensor grad = entry.param.grad();
    if (!grad.defined()) continue;
    ++entry.step;
    turns.push_back({entry, grad});
  }
  if (!turns.empty()) update(turns);
}

std::vector<Tensor> ParameterwiseOptimizer::parameters() const {
  std::vector<Tensor> params;
  for (const Entry& entry : entries_) params.push_back(entry.param);
  return params;
}

Tensor& ParameterwiseOptimizer::state_of(Entry& entry, std::size_t state, double value) const {
  Tensor& tensor = entry.state[state];
  if (!tensor.defined()) {
    tensor = new_state(entry.param);
    ops::fill(tensor, value);
  }
  return tensor;
}

nn::StateDict ParameterwiseOptimizer::state_dict() const {
  nn::StateDict state;
  for (std::size_t group = 0; group < groups_; ++group) {
    state[group_key(group, "lr")] = scalar(lr(group), float64);
    if (const auto value = momentum(group)) state[group_key(group, "momentum")] = scalar(*value, float64);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    state[param_key(i, "step")] = scalar(entries_[i].step, int64);
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      if (entries_[i].state[k].defined())
        state[param_key(i, state_names_[k])] = ops::copy(entries_[i].state[k]);
  }
  return state;
}

std::string ParameterwiseOptimizer::state_problems(const nn::StateDict& state) const {
  std::string problems;
  std::set<std::string> used;
  const auto look_at = [&](const std::string& key, const Shape& shape, bool needed) {
    used.insert(key);
    const auto found = state.find(key);
    if (found == state.end()) {
      if (needed) problems += "\n  missing     " + key;
    } else if (!found->second.defined() || found->second.shape() != shape) {
      problems += fmt::format("\n  shape       {}  needs {}, got {}", key, shape, found->second.describe());
    }
  };

  for (std::size_t group = 0; group < groups_; ++group) {
    look_at(group_key(group, "lr"), {}, true);
    if (momentum(group)) look_at(group_key(group, "momentum"), {}, true);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string step_key = param_key(i, "step");
    look_at(step_key, {}, true);
    const auto step = state.find(step_key);
    const bool stepped = step != state.end() && step->second.defined() && step->second.numel() == 1 &&
                         step->second.item<int64_t>() > 0;
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      look_at(param_key(i, state_names_[k]), entry.param.shape(), stepped && needs_state(entry.group, k));
  }
  for (const auto& [key, tensor] : state)
    if (!used.contains(key)) problems += fmt::format("\n  unexpected  {}  {}", key, tensor.describe());
  return problems;
}

void ParameterwiseOptimizer::take_state(const nn::StateDict& state) {
  std::vector<Entry> entries = entries_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    entry.step = state.at(param_key(i, "step")).item<int64_t>();
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      const auto given = state.find(param_key(i, state_names_[k]));
      entry.state[k] = given != state.end() ? new_state(entry.param) : Tensor();
      if (given != state.end())
        ops::copy_into(entry.state[k], ops::to_device(given->second, entry.param.device()));
    }
  }
  entries_ = std::move(entries);
  for (std::size_t group = 0; group < groups_; ++group) {
    set_lr(group, state.at(group_key(group, "lr")).item());
    if (momentum(group)) set_momentum(group, state.at(group_key(group, "momentum")).item());
  }
}

}  // namespace pleat::optim
