// Private header: not installed.
#pragma once

#include <map>
#include <string>
#include <vector>

/// How each function is written in ONNX.

namespace pleat::onnx {

class Emit;

/// A function's form in ONNX: emits nodes, and returns the names of the results.
struct Conversion {
  std::size_t least_inputs, most_inputs;
  std::vector<std::string> (*convert)(Emit&);
};
using Conversions = std::map<std::string, Conversion, std::less<>>;

/// All of them by the function's name.
const Conversions& conversions();

/// Whether the function has one, and so many inputs.
bool knows_function(const std::string& function, std::size_t inputs);

// By the file that has them.
void add_elementwise(Conversions& all);
void add_compare(Conversions& all);
void add_shape(Conversions& all);
void add_index(Conversions& all);
void add_reduce(Conversions& all);
void add_layers(Conversions& all);
void add_pools(Conversions& all);
void add_sequence(Conversions& all);

}  // namespace pleat::onnx
