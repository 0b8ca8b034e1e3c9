// Private header: not installed.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/onnx/import/node_call.h"
#include "pleat/ops/attention/attention.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/scatter.h"
#include "pleat/ops/index/sort.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/recurrent/layer.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/sample/deform_conv.h"
#include "pleat/ops/sample/grid_sample.h"
#include "pleat/ops/sample/roi_align.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/ops/unfold/unfold.h"

/// How each operator of ONNX (https://onnx.ai/onnx/operators) is computed: a row for each in the tables of
/// *_operators.cpp, which take the functions of Pleat from here.

namespace pleat::onnx::imported {

using Integers = std::vector<int64_t>;
using X = const Tensor&;

/// What a node becomes: a value for each of its outputs.
struct NodeResults : GraphValues {
  NodeResults(Tensor one) : GraphValues{GraphValue(std::move(one))} {}
  NodeResults(GraphValue one) : GraphValues{std::move(one)} {}
  NodeResults(GraphValues all) : GraphValues(std::move(all)) {}
  NodeResults(const std::vector<Tensor>& all) : GraphValues(all.begin(), all.end()) {}
};

/// What an input of an operator is for those who train it.
enum class Slot : unsigned char {
  operand,    ///< a parameter where it is of the file, floating, and more than one number
  parameter,  ///< a parameter, whatever its size
  buffer,     ///< saved and moved with the network, not trained
  option      ///< a number or list that stays as it is
};

struct Operator {
  std::function<NodeResults(NodeCall&)> compute;
  std::vector<Slot> slots = {};  ///< of the inputs; the last holds for all that follow
  /// Whether it draws random numbers, or differs in training: never computed ahead.
  bool depends_on_mode = false;
  std::size_t most_inputs = 1 << 20;
  std::set<std::string, std::less<>> attributes = {};  ///< all others are refused
};
/// By name; those of other domains are written "com.microsoft.Gelu". The tables of *_operators.cpp have the
/// most inputs and the attributes in it: "Conv/3(group pads)".
using Operators = std::map<std::string, Operator, std::less<>>;

/// All of them.
const Operators& operators();

/// An operator of one, two or three tensors without options.
template <class F>
Operator plain(F f) {
  if constexpr (std::invocable<F, X>)
    return {[f](NodeCall& n) -> NodeResults { return f(n.x()); }};
  else if constexpr (std::invocable<F, X, X>)
    return {[f](NodeCall& n) -> NodeResults { return f(n.x(0), n.x(1)); }};
  else
    return {[f](NodeCall& n) -> NodeResults { return f(n.x(0), n.x(1), n.x(2)); }};
}

// By the file that has them.
Operators elementwise_operators();
Operators shape_operators();
Operators index_operators();
Operators reduce_operators();
Operators layer_operators();
Operators attention_operators();
Operators pool_operators();
Operators resize_operators();
Operators recurrent_operators();
Operators control_operators();
Operators quantized_operators();

/// The integers of a type, by ONNX's number; those of uint8 where it is no type of integers.
struct IntegerRange {
  int64_t type, low, high;
};
IntegerRange range_of(int64_t type);

/// A convolution by the node's strides, pads, dilations and groups.
Tensor convolution(NodeCall& n, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// Pads by sides of each spatial dimension, as "pads" and "auto_pad" say.
std::vector<std::pair<int64_t, int64_t>> sides_of(const NodeCall& n, const Shape& input,
                                                  const std::vector<int64_t>& kernel,
                                                  const std::vector<int64_t>& stride,
                                                  const std::vector<int64_t>& dilation);

}  // namespace pleat::onnx::imported
