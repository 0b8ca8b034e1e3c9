#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"

namespace pleat::nn {

/// One call of a module.
struct SummaryRow {
  std::string path;  ///< of the module: "layer1.0.conv"; empty for the network itself
  std::string type;
  int depth = 0;  ///< how many calls it happened in
  Shape input;
  Shape output;
  int64_t parameters =
      0;  ///< elements of its own parameters, not those of modules inside; 0 when counted before
  int64_t multiply_adds = 0;  ///< of convolutions and linear layers; others count nothing
};

struct Summary {
  std::vector<SummaryRow> rows;  ///< in the order of the calls
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  int64_t parameter_bytes = 0;
  int64_t multiply_adds = 0;
  /// Of the results of all modules that called no other one: about what training keeps for backward.
  int64_t activation_bytes = 0;
};

/// What a network makes of an input: calls it once, in evaluation mode and off the tape, and tells each
/// module's result. Nothing in the network is changed. Throws what its forward throws.
Summary summary(Module& net, const Tensor& input);
/// The same for zeros of this shape, of the type and on the device of the first parameter.
Summary summary(Module& net, const Sizes& input_shape);

/// A table, as wide as the page (core/base/terminal.h):
///
///   Layer            Output            Parameters  Multiply-adds
///   Sequential       [1, 10]
///     0: Conv2d      [1, 16, 32, 32]          448        442,368
std::string to_string(const Summary& summary);
std::ostream& operator<<(std::ostream& out, const Summary& summary);

}  // namespace pleat::nn
