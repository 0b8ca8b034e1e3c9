#pragma once

#include <map>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::nn {

/// Tensors by name: the parameters and buffers of a module, or the state of an optimiser; what a checkpoint
/// holds.
using StateDict = std::map<std::string, Tensor>;

struct LoadOptions {
  /// Whether names that are missing or unexpected are errors. Shapes that differ always are.
  bool strict = true;
};

/// What a load that was not strict passed over.
struct LoadReport {
  std::vector<std::string> missing;     ///< wanted, but not in the state
  std::vector<std::string> unexpected;  ///< in the state, but not wanted
};

/// Copies each tensor of `from` into the tensor of that name in `into`, converting type and layout.
/// All problems are reported at once in a ValueError that begins with `what`, and then nothing was changed:
/// names missing or unexpected (when strict), undefined tensors, different shapes, another kind of type
/// (floating, integer, bool), and numbers that do not fit.
LoadReport copy_state(const std::string& what, const StateDict& into, const StateDict& from,
                      LoadOptions options = {});

/// The same with copies of all tensors: a state that later training does not change.
StateDict clone(const StateDict& state);

}  // namespace pleat::nn
