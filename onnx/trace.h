// Private header: not installed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pleat/core/tensor/trace.h"
#include "pleat/nn/module.h"

/// One run of a function, written down call by call.

namespace pleat::onnx {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Value {
  enum class Kind : unsigned char {
    input,
    state,     ///< a parameter or buffer of the module
    constant,  ///< depends on neither
    result     ///< of a call
  };
  Kind kind;
  Tensor tensor;     ///< of a constant a copy; of a result its shape and type alone, see `repeated`
  std::string name;  ///< of state
};

struct Call {
  std::string function;
  std::string module;        ///< its path; empty: the outermost one
  std::vector<int> inputs;   ///< values; -1: undefined
  std::vector<int> outputs;  ///< values; -1: undefined
  Attributes attributes;

  /// "relu in layer1.0".
  std::string where() const;
};

struct Trace {
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<int> inputs, outputs;
  /// Whether the function has read elements of what depends on inputs or state, which it may decide by.
  bool reads_numbers = false;
};

/// A tensor in another shape, that takes no memory: what it has at 0 of the sizes that differ, again and again.
Tensor repeated(const Tensor& tensor, const Shape& shape);

/// Runs `function(inputs)`, off the tape. `net` gives names to its tensors and modules; it may be null.
/// Throws ValueError where a result would depend on a function that cannot be seen.
Trace trace(nn::Module* net, const Function& function, const std::vector<Tensor>& inputs);

}  // namespace pleat::onnx
