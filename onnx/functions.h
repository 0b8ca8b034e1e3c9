// Private header: not installed.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pleat/onnx/emit.h"

/// How each function is written in ONNX: a row for each in the tables of *_functions.cpp.

namespace pleat::onnx {

using Integers = std::vector<int64_t>;

/// What a call becomes: a value for each of its results.
struct Results : Operands {
  Results(Operand one) : Operands{std::move(one)} {}
  Results(Operands all) : Operands(std::move(all)) {}
  Results(std::initializer_list<Operand> all) : Operands(all) {}
};

/// A function's form in ONNX: emits nodes, and returns the results.
struct Conversion {
  std::size_t least_inputs, most_inputs;
  std::function<Results(Emit&)> convert;
};
using Conversions = std::map<std::string, Conversion, std::less<>>;

/// One operator of all inputs, in the type of the result. Its attributes are options of the call:
/// {ONNX's name, the function's}.
Conversion op(std::size_t inputs, const char* name,
              std::vector<std::pair<const char*, const char*>> attributes = {});

/// A formula of one to three inputs, in the type of the result.
template <class F>
Conversion formula(F f) {
  using X = const Operand&;
  if constexpr (std::invocable<F, X>) {
    return {1, 1, [f](Emit& e) -> Results { return f(e.x()); }};
  } else if constexpr (std::invocable<F, X, X>) {
    return {2, 2, [f](Emit& e) -> Results { return f(e.x(0), e.x(1)); }};
  } else {
    return {3, 3, [f](Emit& e) -> Results { return f(e.x(0), e.x(1), e.x(2)); }};
  }
}

/// All of them by the function's name.
const Conversions& conversions();

/// Whether the function has one, and so many inputs.
bool knows_function(const std::string& function, std::size_t inputs);

// By the file that has them.
Conversions elementwise_functions();
Conversions compare_functions();
Conversions shape_functions();
Conversions index_functions();
Conversions reduce_functions();
Conversions layer_functions();
Conversions pool_functions();
Conversions sequence_functions();

}  // namespace pleat::onnx
