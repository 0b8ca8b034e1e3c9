#pragma once

#include <map>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::nn {

/// Tensors by name: the parameters and buffers of a module, or the state of an optimiser.
/// Checkpoints hold them.
using StateDict = std::map<std::string, Tensor>;

struct LoadOptions {
  /// Whether names that are missing or unexpected are errors. Shapes that differ always are.
  bool strict = true;
};

/// The names that a load with strict = false skipped.
struct LoadReport {
  std::vector<std::string> missing;     ///< of the module, but not in the state
  std::vector<std::string> unexpected;  ///< in the state, but not of the module
};

/// Copies each tensor of `from` into the tensor of that name in `into`, converting type and layout.
/// Throws one ValueError with the first problems, which begins with `what`, before it changes
/// anything: names missing or unexpected (when strict), undefined tensors, different shapes, another
/// kind of type (floating, integer, bool), and numbers that do not fit. Its last line says whether
/// names fit with another beginning ("module."), or most tensors are another network's.
LoadReport copy_state(const std::string& what, const StateDict& into, const StateDict& from,
                      LoadOptions options = {});

/// The same state with copies of all tensors, which later training does not change.
StateDict clone(const StateDict& state);

}  // namespace pleat::nn
