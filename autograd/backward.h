#pragma once

#include <vector>

#include "pleat/autograd/tape.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

struct BackwardOptions {
  bool retain_graph = false;  ///< keep the graph for another backward through it
  bool create_graph =
      false;  ///< record the gradients' computation, for gradients of gradients; implies retain_graph
  bool allow_unused = false;  ///< of `grad` and of `inputs`: an input that the outputs do not depend on gives
                              ///< an undefined Tensor, and is left alone
  /// Of `backward` only: the leaves whose gradients are computed and accumulated. Empty: all.
  std::vector<Tensor> inputs = {};
};

/// Accumulates the gradients of the outputs, weighted by `gradients`, into `grad()` of the leaves they were
/// computed from. `gradients` has one tensor of the shape of each output; an undefined one stands for 1 where
/// the output has one element. Throws AutogradError when no output requires a gradient, a graph was released
/// already, or one of `inputs` is no leaf or is not reached.
void backward(const std::vector<Tensor>& outputs, const Grads& gradients = {},
              const BackwardOptions& options = {});

/// The gradients of the outputs with respect to `inputs`, accumulating nothing. Only what lies between
/// outputs and inputs is walked, and the functions of checkpoint(), which may use an input. Throws
/// AutogradError for an input that the outputs do not depend on.
Grads grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const Grads& gradients = {},
           const BackwardOptions& options = {});

}  // namespace pleat
