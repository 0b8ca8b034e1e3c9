#include "pleat/nn/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <set>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"

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

void Optimizer::add_parameters(const std::vector<Tensor>& params) {
  check<ValueError>(!params.empty(), "{}: got no parameters; a module lists its own in members()", name_);
  std::vector<Entry> added;
  std::set<const TensorImpl*> known;
  for (const Entry& entry : entries_) known.insert(&entry.param.impl());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    check<ValueError>(param.defined(), "{}: parameter {} is undefined", name_, i);
    check<DTypeError>(is_floating(param.dtype()), "{}: parameters must be floating, number {} is {}", name_,
                      i, param.describe());
    check<ValueError>(param.is_leaf(),
                      "{}: parameter {}, {}, was computed by a function; only leaves can be trained", name_,
                      i, param.describe());
    check<ValueError>(known.insert(&param.impl()).second, "{}: parameter {}, {}, is given twice", name_, i,
                      param.describe());
    check_parameter(param);
    added.push_back({param, groups_, 0, std::vector<Tensor>(state_names_.size())});
  }
  entries_.insert(entries_.end(), added.begin(), added.end());
  ++groups_;
}

void Optimizer::check_parameter(const Tensor&) const {}

void Optimizer::step() {
  for (std::size_t group = 0; group < groups_; ++group) check_group(group);
  for (Entry& entry : entries_) {
    const Tensor grad = entry.param.grad();
    if (!grad.defined()) continue;
    ++entry.step;
    update(entry, grad);
  }
}

void Optimizer::zero_grad() {
  for (const Entry& entry : entries_) entry.param.set_grad({});
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> params;
  for (const Entry& entry : entries_) params.push_back(entry.param);
  return params;
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < groups_; ++group) set_lr(group, lr);
}

Tensor& Optimizer::state_of(Entry& entry, std::size_t state, double value) const {
  Tensor& tensor = entry.state[state];
  if (!tensor.defined()) {
    tensor = new_state(entry.param);
    ops::fill(tensor, value);
  }
  return tensor;
}

nn::StateDict Optimizer::state_dict() const {
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

void Optimizer::load_state_dict(const nn::StateDict& state) {
  std::string problems;
  std::set<std::string> used;
  const auto find = [&](const std::string& key, const Shape& shape, bool needed) -> Tensor {
    used.insert(key);
    const auto found = state.find(key);
    if (found == state.end()) {
      if (needed) problems += "\n  missing     " + key;
      return {};
    }
    if (!found->second.defined() || found->second.shape() != shape) {
      problems += fmt::format("\n  shape       {}  needs {}, got {}", key, shape, found->second.describe());
      return {};
    }
    return found->second;
  };

  std::vector<std::array<Tensor, 2>> rates;
  for (std::size_t group = 0; group < groups_; ++group)
    rates.push_back({find(group_key(group, "lr"), {}, true),
                     momentum(group) ? find(group_key(group, "momentum"), {}, true) : Tensor()});
  std::vector<Entry> entries = entries_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    const Tensor step = find(param_key(i, "step"), {}, true);
    entry.step = step.defined() ? step.item<int64_t>() : 0;
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      const Tensor given = find(param_key(i, state_names_[k]), entry.param.shape(),
                                entry.step > 0 && needs_state(entry.group, k));
      entry.state[k] = given.defined() ? new_state(entry.param) : Tensor();
      if (given.defined()) ops::copy_into(entry.state[k], ops::to_device(given, entry.param.device()));
    }
  }
  for (const auto& [key, tensor] : state)
    if (!used.contains(key)) problems += fmt::format("\n  unexpected  {}  {}", key, tensor.describe());
  check<ValueError>(problems.empty(), "{}: the state does not fit{}", name_, problems);

  entries_ = std::move(entries);
  for (std::size_t group = 0; group < groups_; ++group) {
    set_lr(group, rates[group][0].item());
    if (rates[group][1].defined()) set_momentum(group, rates[group][1].item());
  }
}

}  // namespace pleat::optim
