#pragma once

#include <functional>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Computes `function(inputs)` without keeping what its backward needs; backward computes it once more.
/// Trades time for memory: of a chain of blocks only the blocks' inputs stay. Parameters and other tensors
/// that the function refers to get their gradients as usual. (Chen et al., "Training deep nets with sublinear
/// memory cost", arXiv:1604.06174.) Gradients of gradients through it work: backward with create_graph
/// records the second run.
///
/// The second run computes what the first one did: it begins with the elements of tensors (running
/// statistics) and the states of generators that the first one has changed, and what it changes is undone.
/// Other things that a function keeps, a number or which tensor a handle refers to, change in both runs: keep
/// them in the elements of tensors. Hooks are registered in the second run. Throws AutogradError when the
/// function changes a tensor in place that is not its own and requires a gradient; backward, when the second
/// run gives another shape or type.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input);

}  // namespace pleat
