#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/nn/optim/optimizer.h"

namespace pleat::optim {

/// Several optimisers as one, with one step(), one Schedule and one state dictionary, for networks
/// whose parameters are trained in different ways.
///
///   optim::MultiOptimizer both{optim::Muon{matrices, {.lr = 0.02}}, optim::AdamW{others, {.lr = 1e-3}}};
///   optim::Schedule schedule{both, optim::CosineAnnealingLR{.steps = 1000}};
///
/// Its groups are those of the first part, then those of the second ... The state dictionary has
/// the parts' entries after their numbers: "0.param.0.step", "1.group.0.lr".
class MultiOptimizer : public Optimizer {
 public:
  /// Takes the optimisers over. Throws ValueError when two have the same parameter.
  template <std::derived_from<Optimizer>... Parts>
  requires(sizeof...(Parts) >= 2) explicit MultiOptimizer(Parts... parts) : Optimizer("MultiOptimizer") {
    (parts_.push_back(std::make_unique<Parts>(std::move(parts))), ...);
    check_disjoint();
  }

  std::size_t num_parts() const { return parts_.size(); }
  /// One of the optimisers, for its options. Throws IndexError when there is none of this number.
  Optimizer& part(std::size_t index);
  const Optimizer& part(std::size_t index) const;

  std::vector<Tensor> parameters() const override;
  std::size_t num_groups() const override;
  nn::StateDict state_dict() const override;

 protected:
  GroupPlace find(std::size_t group) const override;
  void check_options() const override;
  bool has_gradient() const override;
  void update_parameters(const std::vector<Tensor>& found) override;
  std::string state_problems(const nn::StateDict& state) const override;
  void take_state(const nn::StateDict& state) override;

 private:
  void check_disjoint() const;
  /// A state's entries of each part, by the part's own names.
  std::vector<nn::StateDict> split(const nn::StateDict& state) const;

  std::vector<std::unique_ptr<Optimizer>> parts_;
};

}  // namespace pleat::optim
