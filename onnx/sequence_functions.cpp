#include <limits>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"
#include "pleat/ops/recurrent/options.h"

/// Attention and recurrent layers.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

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

/// softmax(scale q k^T + mask) v, as in ops/attention/attention.cpp; a query that takes no key gives 0.
Names attention(Emit& e) {
  if (e.number("dropout") != 0) e.refuse("it drops shares, as in training");
  const DType dtype = e.out_dtype();
  const auto number = [&](double value) { return e.number(value, dtype); };
  const int64_t rank = e.rank(1);
  Integers order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const std::string keys = e.node("Transpose", {e.in(1)}, {{"perm", order}});
  std::string scores = e.node("Mul", {e.node("MatMul", {e.in(0), keys}), number(e.number("scale"))});
  if (e.flag("is_causal"))
    scores =
        e.node("Add", {scores, e.constant(causal_mask(e.fixed_size(0, -2), e.fixed_size(1, -2), dtype))});
  if (!e.has(3)) {
    const std::string shares = e.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    return {e.node("MatMul", {shares, e.in(2)})};
  }
  scores = e.dtype(3) == boolean ? e.node("Where", {e.in(3), scores, number(-infinity)})
                                 : e.node("Add", {scores, e.in(3, dtype)});
  const std::string most = e.node("ReduceMax", {scores, e.list(Integers{-1})}, {{"keepdims", int64_t{1}}});
  const std::string nothing = e.node("Equal", {most, number(-infinity)});
  const std::string shares =
      e.node("Softmax", {e.node("Where", {nothing, number(0), scores})}, {{"axis", int64_t{-1}}});
  return {e.node("MatMul", {e.node("Where", {nothing, number(0), shares}), e.in(2)})};
}

/// The gates of a weight [gates * H, ...] or bias in another order, with a dimension of directions before.
std::string gates_of(Emit& e, const std::string& weight, int64_t width, const Integers& order) {
  std::string y = weight;
  if (order.size() > 1) {
    const Integers sizes(order.size(), width);
    const Names parts = e.nodes("Split", {weight, e.list(sizes)}, {{"axis", int64_t{0}}}, order.size());
    Names moved;
    for (const int64_t gate : order) moved.push_back(parts[static_cast<std::size_t>(gate)]);
    y = e.node("Concat", moved, {{"axis", int64_t{0}}});
  }
  return e.node("Unsqueeze", {y, e.list(Integers{0})});
}

/// x [L, N, inputs], w_ih, w_hh, b_ih, b_hh, h, c, lengths.
Names recurrent_layer(Emit& e) {
  const auto cell = static_cast<RecurrentCell>(e.integer("cell"));
  const int64_t width = e.fixed_size(2, 1);
  // Pleat has i, f, g, o and r, z, n; ONNX i, o, f, c and z, r, h.
  const Integers order = cell == RecurrentCell::lstm  ? Integers{0, 3, 1, 2}
                         : cell == RecurrentCell::gru ? Integers{1, 0, 2}
                                                      : Integers{0};
  const char* op = cell == RecurrentCell::lstm ? "LSTM" : cell == RecurrentCell::gru ? "GRU" : "RNN";
  std::string bias;
  if (e.has(3))
    bias = e.node("Concat", {gates_of(e, e.in(3), width, order), gates_of(e, e.in(4), width, order)},
                  {{"axis", int64_t{1}}});
  const auto state = [&](std::size_t i) {
    return e.has(i) ? e.node("Unsqueeze", {e.in(i), e.list(Integers{0})}) : std::string();
  };
  NodeAttributes attributes{{"hidden_size", width}, {"direction", e.flag("reverse") ? "reverse" : "forward"}};
  if (cell == RecurrentCell::gru) attributes.emplace_back("linear_before_reset", int64_t{1});
  if (cell == RecurrentCell::rnn_relu) attributes.emplace_back("activations", Names{"Relu"});
  Names inputs{
      e.in(0), gates_of(e, e.in(1), width, order), gates_of(e, e.in(2), width, order), bias, e.in(7, int32),
      state(5)};
  const bool is_lstm = cell == RecurrentCell::lstm;
  if (is_lstm) inputs.push_back(state(6));
  const Names y = e.nodes(op, inputs, attributes, is_lstm ? 3 : 2);
  // [L, directions, N, H] and [directions, N, H].
  Names results{e.node("Squeeze", {y[0], e.list(Integers{1})}),
                e.node("Squeeze", {y[1], e.list(Integers{0})})};
  results.push_back(is_lstm ? e.node("Squeeze", {y[2], e.list(Integers{0})}) : std::string());
  return results;
}

}  // namespace

void add_sequence(Conversions& all) {
  all.merge(Conversions{
      {"scaled_dot_product_attention", {4, 4, attention}},
      {"recurrent_layer", {8, 8, recurrent_layer}},
  });
}

}  // namespace pleat::onnx
