#include "pleat/nn/optim/multi_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pleat/core/base/format.h"

namespace pleat::optim {
namespace {

/// The number of the part that a name begins with, and the rest of the name; `count` when it begins
/// with none.
std::pair<std::size_t, std::string> split_key(const std::string& key, std::size_t count) {
  for (std::size_t part = 0; part < count; ++part) {
    const std::string prefix = fmt::format("{}.", part);
    if (key.starts_with(prefix)) return {part, key.substr(prefix.size())};
  }
  return {count, key};
}

}  // namespace

void MultiOptimizer::check_disjoint() const {
  std::map<const TensorImpl*, std::size_t> owners;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (const Tensor& param : parts_[i]->parameters()) {
      const auto [owner, is_new] = owners.emplace(&param.impl(), i);
      check<ValueError>(is_new, "MultiOptimizer: a parameter, {}, is trained by two optimisers, {} and {}",
                        param, parts_[owner->second]->name(), parts_[i]->name());
    }
}

const Optimizer& MultiOptimizer::part(std::size_t index) const {
  check_not_moved_from();
  check<IndexError>(index < parts_.size(), "MultiOptimizer: there are {} parts, no part {}", parts_.size(),
                    index);
  return *parts_[index];
}

Optimizer& MultiOptimizer::part(std::size_t index) {
  return const_cast<Optimizer&>(std::as_const(*this).part(index));
}

Optimizer::GroupPlace MultiOptimizer::find(std::size_t group) const {
  check_group_exists(group, num_groups());
  auto part = parts_.begin();
  for (; group >= (*part)->num_groups(); ++part) group -= (*part)->num_groups();
  return (*part)->find(group);
}

std::vector<Tensor> MultiOptimizer::parameters() const {
  check_not_moved_from();
  std::vector<Tensor> all;
  for (const auto& part : parts_)
    for (const Tensor& param : part->parameters()) all.push_back(param);
  return all;
}

std::size_t MultiOptimizer::num_groups() const {
  check_not_moved_from();
  std::size_t count = 0;
  for (const auto& part : parts_) count += part->num_groups();
  return count;
}

void MultiOptimizer::check_options() const {
  for (const auto& part : parts_) part->check_options();
}

bool MultiOptimizer::has_gradient() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->has_gradient(); });
}

void MultiOptimizer::update_parameters(const std::vector<Tensor>& found) {
  for (const auto& part : parts_) part->update_parameters(found);
}

nn::StateDict MultiOptimizer::state_dict() const {
  check_not_moved_from();
  nn::StateDict all;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (auto& [key, tensor] : parts_[i]->state_dict()) all[fmt::format("{}.{}", i, key)] = tensor;
  return all;
}

std::vector<nn::StateDict> MultiOptimizer::split(const nn::StateDict& state) const {
  std::vector<nn::StateDict> states(parts_.size());
  for (const auto& [key, tensor] : state) {
    const auto [part, rest] = split_key(key, parts_.size());
    if (part < parts_.size()) states[part][rest] = tensor;
  }
  return states;
}

std::string MultiOptimizer::state_problems(const nn::StateDict& state) const {
  std::string problems;
  const std::vector<nn::StateDict> states = split(state);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string found = parts_[i]->state_problems(states[i]);
    if (!found.empty())
      problems += fmt::format("\n  {}, names beginning with \"{}.\"{}", parts_[i]->name(), i, found);
  }
  for (const auto& [key, tensor] : state)
    if (split_key(key, parts_.size()).first == parts_.size())
      problems += fmt::format("\n  unexpected  {}  {}", key, tensor.describe());
  return problems;
}

void MultiOptimizer::take_state(const nn::StateDict& state) {
  const std::vector<nn::StateDict> states = split(state);
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->take_state(states[i]);
}

}  // namespace pleat::optim
