#pragma once

#include <functional>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Computes `function(inputs)` without keeping what its backward needs; backward computes it once more.
/// Trades time for memory: of a chain of blocks only the blocks' inputs stay. The default generator is set
/// back for the second run, so that dropout drops the same. Parameters that the function refers to get their
/// gradients as usual. (Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174.)
/// Gradients of gradients through it work: backward with create_graph records the second run.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input);

}  // namespace pleat
