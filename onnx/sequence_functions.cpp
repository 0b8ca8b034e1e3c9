#include <limits>
#include <numeric>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/onnx/functions.h"
#include "pleat/ops/recurrent/recurrent.h"

/// Attention and recurrent layers.

namespace pleat::onnx {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// -infinity for keys after the query, else 0: [L, S].
Tensor causal_mask(int64_t queries, int64_t keys, DType dtype) {
  std::vector<double> mask(static_cast<std::size_t>(queries * keys), 0);
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = q + 1; k < keys; ++k) mask[static_cast<std::size_t>(q * keys + k)] = -infinity;
  const Tensor wide = from_vector(mask, {queries, keys}, Device());
  const Tensor result = empty({queries, keys}, {.dtype = dtype, .device = Device()});
  ops::copy_into(result, wide);
  return result;
}

/// softmax(scale q k^T + mask) v, as the function computes it; a query that takes no key gives 0.
Operand attention(Emit& e) {
  if (e.number("dropout") != 0) e.refuse("it drops shares, as in training");
  const DType dtype = e.out_dtype();
  Integers order(static_cast<std::size_t>(e.rank(1)));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Operand scores = apply("MatMul", e.in(0), e.transpose(e.in(1), order)) * e.number("scale");
  if (e.flag("is_causal"))
    scores = scores + e.constant(causal_mask(e.fixed_size(0, -2), e.fixed_size(1, -2), dtype));
  const auto softmax = [&](const Operand& x) { return e.node("Softmax", {x}, {{"axis", -1}}); };
  if (!e.has(3)) return apply("MatMul", softmax(scores), e.in(2));
  scores = e.dtype(3) == boolean ? apply("Where", e.in(3), scores, -infinity) : scores + e.in(3, dtype);
  const Operand most = e.node("ReduceMax", {scores, e.list(Integers{-1})}, {{"keepdims", 1}});
  const Operand nothing = apply("Equal", most, -infinity);
  const Operand shares = softmax(apply("Where", nothing, 0, scores));
  return apply("MatMul", apply("Where", nothing, 0, shares), e.in(2));
}

/// The gates of a weight [gates * H, ...] or bias in another order, with a dimension of directions before.
Operand gates_of(Emit& e, Operand weight, int64_t width, const Integers& order) {
  if (order.size() > 1) {
    const Integers sizes(order.size(), width);
    const Operands parts = e.nodes("Split", {weight, e.list(sizes)}, {{"axis", 0}}, order.size());
    Operands moved;
    for (const int64_t gate : order) moved.push_back(parts[static_cast<std::size_t>(gate)]);
    weight = e.concat(moved, 0);
  }
  return apply("Unsqueeze", weight, e.list(Integers{0}));
}

/// x [L, N, inputs], w_ih, w_hh, b_ih, b_hh, h, c, lengths.
Operands recurrent_layer(Emit& e) {
  const auto cell = static_cast<RecurrentCell>(e.integer("cell"));
  const int64_t width = e.fixed_size(2, 1);
  // Pleat has i, f, g, o and r, z, n; ONNX i, o, f, c and z, r, h.
  const Integers order = cell == RecurrentCell::lstm  ? Integers{0, 3, 1, 2}
                         : cell == RecurrentCell::gru ? Integers{1, 0, 2}
                                                      : Integers{0};
  const char* op = cell == RecurrentCell::lstm ? "LSTM" : cell == RecurrentCell::gru ? "GRU" : "RNN";
  Operand bias;
  if (e.has(3)) bias = e.concat({gates_of(e, e.in(3), width, order), gates_of(e, e.in(4), width, order)}, 1);
  const auto state = [&](std::size_t i) {
    return e.has(i) ? apply("Unsqueeze", e.in(i), e.list(Integers{0})) : Operand();
  };
  NodeAttributes attributes{{"hidden_size", width}, {"direction", e.flag("reverse") ? "reverse" : "forward"}};
  if (cell == RecurrentCell::gru) attributes.emplace_back("linear_before_reset", 1);
  if (cell == RecurrentCell::rnn_relu)
    attributes.emplace_back("activations", std::vector<std::string>{"Relu"});
  Operands inputs{
      e.in(0), gates_of(e, e.in(1), width, order), gates_of(e, e.in(2), width, order), bias, e.in(7, int32),
      state(5)};
  const bool is_lstm = cell == RecurrentCell::lstm;
  if (is_lstm) inputs.push_back(state(6));
  const Operands y = e.nodes(op, inputs, attributes, is_lstm ? 3 : 2);
  // [L, directions, N, H] and [directions, N, H].
  Operands results{apply("Squeeze", y[0], e.list(Integers{1})), apply("Squeeze", y[1], e.list(Integers{0}))};
  results.push_back(is_lstm ? apply("Squeeze", y[2], e.list(Integers{0})) : Operand());
  return results;
}

}  // namespace

Conversions sequence_functions() {
  return {
      {"scaled_dot_product_attention", {4, 4, attention}},
      {"recurrent_layer", {8, 8, recurrent_layer}},
  };
}

}  // namespace pleat::onnx
