#include "pleat/onnx/import/operators.h"

/// LSTM, GRU and RNN. ONNX orders gates i o f c and z r h, Pleat i f g o and r z n; peepholes, other
/// activations, clips and a GRU that resets before its product are computed step by step.

namespace pleat::onnx::imported {
namespace {

using Gates = std::vector<int64_t>;
using Activation = std::function<Tensor(const Tensor&)>;

/// Rows [G H, ...] with the gates in another order.
Tensor reordered(const Tensor& rows, const Gates& order) {
  if (!rows.defined() || order.size() == 1) return rows;
  const int64_t width = rows.size(0) / static_cast<int64_t>(order.size());
  std::vector<Tensor> parts;
  for (const int64_t gate : order) parts.push_back(narrow(rows, 0, gate * width, width));
  return cat(parts, 0);
}

/// One direction of a node.
struct Direction {
  Tensor w, r, wb, rb, peepholes, h, c;
  bool reverse;
  std::vector<Activation> activations;
};

Activation activation_of(NodeCall& n, const std::string& given, double alpha, double beta) {
  std::string name = given;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "relu") return [](const Tensor& x) { return relu(x); };
  if (name == "affine") return [=](const Tensor& x) { return x * alpha + beta; };
  if (name == "leakyrelu") return [=](const Tensor& x) { return leaky_relu(x, alpha); };
  if (name == "thresholdedrelu") return [=](const Tensor& x) { return threshold(x, alpha, 0); };
  if (name == "scaledtanh") return [=](const Tensor& x) { return tanh(x * beta) * alpha; };
  if (name == "hardsigmoid") return [=](const Tensor& x) { return clamp(x * alpha + beta, 0, 1); };
  if (name == "elu") return [=](const Tensor& x) { return elu(x, alpha); };
  if (name == "softsign") return [](const Tensor& x) { return softsign(x); };
  if (name == "softplus") return [](const Tensor& x) { return softplus(x); };
  n.fail("has no activation '" + given + "'");
}

double default_alpha(const std::string& name) {
  if (name == "HardSigmoid") return 0.2;
  if (name == "LeakyRelu") return 0.01;
  return 1;
}

struct States {
  std::vector<Tensor> outputs;
  Tensor h, c;
};

/// All steps [L, N, I] of one direction, by the formulas of https://onnx.ai/onnx/operators. `step` gives the
/// next h and c of a row [N, I], h and c.
template <class Step>
States by_steps(const Tensor& x, const Direction& d, const Tensor& lengths, const Step& step) {
  States s{{}, d.h, d.c};
  const int64_t steps = x.size(0);
  s.outputs.resize(static_cast<std::size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = d.reverse ? steps - 1 - k : k;
    auto [h, c] = step(squeeze(narrow(x, 0, t, 1), {0}), s.h, s.c);
    Tensor output = h;
    if (lengths.defined()) {
      const Tensor running = unsqueeze(lengths.to(x.device()) > t, -1);
      output = where(running, h, 0);
      h = where(running, h, s.h);
      if (c.defined()) c = where(running, c, s.c);
    }
    s.outputs[static_cast<std::size_t>(t)] = output;
    s.h = h;
    s.c = c;
  }
  return s;
}

enum class Kind : unsigned char { lstm, gru, rnn };

RecurrentResult stepped(NodeCall& n, Kind kind, const Tensor& x, Direction d, const Tensor& lengths,
                        int64_t width) {
  const double clip = n.number("clip", 0);
  const auto limited = [&](const Tensor& t) { return clip > 0 ? clamp(t, -clip, clip) : t; };
  const auto part = [&](const Tensor& t, int64_t gate) { return narrow(t, -1, gate * width, width); };
  const auto zeros_of = [&] { return zeros({x.size(1), width}, {.dtype = x.dtype(), .device = x.device()}); };
  if (!d.h.defined()) d.h = zeros_of();
  if (kind == Kind::lstm && !d.c.defined()) d.c = zeros_of();
  const auto& f = d.activations;
  const auto peep = [&](const Tensor& gate, int64_t which, const Tensor& c) {
    return d.peepholes.defined() ? gate + part(d.peepholes, which) * c : gate;
  };
  const States s = by_steps(x, d, lengths, [&](const Tensor& row, const Tensor& h, const Tensor& c) {
    const Tensor a = linear(row, d.w, d.wb), u = linear(h, d.r, d.rb);
    if (kind == Kind::rnn) return std::pair(f[0](limited(a + u)), Tensor());
    if (kind == Kind::lstm) {
      const Tensor i = f[0](limited(peep(part(a, 0) + part(u, 0), 0, c)));
      const Tensor forget =
          n.flag("input_forget") ? 1 - i : f[0](limited(peep(part(a, 2) + part(u, 2), 2, c)));
      const Tensor next = forget * c + i * f[1](limited(part(a, 3) + part(u, 3)));
      const Tensor o = f[0](limited(peep(part(a, 1) + part(u, 1), 1, next)));
      return std::pair(o * f[2](next), next);
    }
    const Tensor z = f[0](limited(part(a, 0) + part(u, 0))), r = f[0](limited(part(a, 1) + part(u, 1)));
    Tensor product = part(u, 2) * r;
    if (!n.flag("linear_before_reset"))
      product = linear(r * h, narrow(d.r, 0, 2 * width, width),
                       d.rb.defined() ? narrow(d.rb, 0, 2 * width, width) : Tensor());
    const Tensor candidate = f[1](limited(part(a, 2) + product));
    return std::pair((1 - z) * candidate + z * h, Tensor());
  });
  return {stack(s.outputs, 0), s.h, s.c};
}

NodeResults recurrent_of(NodeCall& n, Kind kind) {
  const bool batch_first = n.integer("layout", 0) == 1;
  const Tensor x = batch_first ? transpose(n.x(0), 0, 1) : n.x(0);
  const std::string direction = n.text("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t gates = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
  if (x.rank() != 3 || n.rank(1) != 3 || n.x(1).size(0) != directions || n.x(2).size(0) != directions)
    n.fail(fmt::format("needs an input of rank 3 and weights of {} directions, got {} and {}", directions, x,
                       n.x(1)));
  const int64_t width = n.x(2).size(-1);
  // Lengths that are all full are none.
  Tensor lengths;
  if (n.has(4)) {
    const std::vector<int64_t> given = n.integers(4);
    if (std::any_of(given.begin(), given.end(), [&](int64_t l) { return l != x.size(0); }))
      lengths = n.value(4).tensor.to(int64);
  }
  const std::vector<std::string> standard = kind == Kind::lstm
                                                ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                            : kind == Kind::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                                : std::vector<std::string>{"Tanh"};
  std::vector<std::string> names = n.texts("activations");
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), standard.begin(), standard.end());
  if (names.size() != standard.size() * static_cast<std::size_t>(directions))
    n.fail("needs other activations");
  const std::vector<double> alphas = n.numbers("activation_alpha"), betas = n.numbers("activation_beta");
  std::vector<Tensor> outputs, last_h, last_c;
  for (int64_t d = 0; d < directions; ++d) {
    const auto of_direction = [&](std::size_t i) {
      return n.has(i) ? squeeze(narrow(n.x(i), 0, d, 1), {0}) : Tensor();
    };
    const auto state = [&](std::size_t i) {
      if (!n.has(i)) return Tensor();
      return squeeze(narrow(batch_first ? transpose(n.x(i), 0, 1) : n.x(i), 0, d, 1), {0});
    };
    const Tensor bias = of_direction(3);
    Direction one{.w = of_direction(1),
                  .r = of_direction(2),
                  .wb = bias.defined() ? narrow(bias, 0, 0, gates * width) : Tensor(),
                  .rb = bias.defined() ? narrow(bias, 0, gates * width, gates * width) : Tensor(),
                  .peepholes = kind == Kind::lstm ? of_direction(7) : Tensor(),
                  .h = state(5),
                  .c = kind == Kind::lstm ? state(6) : Tensor(),
                  .reverse = direction == "reverse" || d == 1,
                  .activations = {}};
    std::vector<std::string> own(names.begin() + d * std::ssize(standard),
                                 names.begin() + (d + 1) * std::ssize(standard));
    const bool is_relu = kind == Kind::rnn && own[0] == "Relu";
    const bool is_standard = (own == standard || is_relu) && n.number("clip", 0) <= 0 &&
                             !one.peepholes.defined() && !n.flag("input_forget") &&
                             (kind != Kind::gru || n.flag("linear_before_reset"));
    RecurrentResult y;
    if (is_standard) {
      const Gates order = kind == Kind::lstm  ? Gates{0, 2, 3, 1}
                          : kind == Kind::gru ? Gates{1, 0, 2}
                                              : Gates{0};
      const RecurrentOptions options{.cell = kind == Kind::lstm  ? RecurrentCell::lstm
                                             : kind == Kind::gru ? RecurrentCell::gru
                                             : is_relu           ? RecurrentCell::rnn_relu
                                                                 : RecurrentCell::rnn_tanh,
                                     .reverse = one.reverse,
                                     .lengths = lengths};
      y = recurrent_layer(x, reordered(one.w, order), reordered(one.r, order), reordered(one.wb, order),
                          reordered(one.rb, order), one.h, one.c, options);
    } else {
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(d) * own.size() + i;
        one.activations.push_back(activation_of(n, own[i],
                                                at < alphas.size() ? alphas[at] : default_alpha(own[i]),
                                                at < betas.size()         ? betas[at]
                                                : own[i] == "HardSigmoid" ? 0.5
                                                                          : 1));
      }
      y = stepped(n, kind, x, std::move(one), lengths, width);
    }
    outputs.push_back(y.output);
    last_h.push_back(y.h);
    if (kind == Kind::lstm) last_c.push_back(y.c);
  }
  // [L, directions, N, H], or by the other layout [N, L, directions, H]; states [directions, N, H].
  const auto joined = [&](const std::vector<Tensor>& states) { return stack(states, batch_first ? 1 : 0); };
  Tensor all = stack(outputs, 1);
  if (batch_first) all = permute(all, {2, 0, 1, 3});
  GraphValues results{all, joined(last_h)};
  if (kind == Kind::lstm) results.push_back(joined(last_c));
  return results;
}

}  // namespace

Operators recurrent_operators() {
  const std::vector<Slot> slots{Slot::operand, Slot::parameter, Slot::parameter, Slot::parameter,
                                Slot::option,  Slot::operand,   Slot::operand,   Slot::parameter};
  return {
      {"GRU/6(activation_alpha activation_beta activations clip direction hidden_size layout "
       "linear_before_reset)",
       {[](NodeCall& n) { return recurrent_of(n, Kind::gru); }, slots}},
      {"LSTM/8(activation_alpha activation_beta activations clip direction hidden_size input_forget layout)",
       {[](NodeCall& n) { return recurrent_of(n, Kind::lstm); }, slots}},
      {"RNN/6(activation_alpha activation_beta activations clip direction hidden_size layout)",
       {[](NodeCall& n) { return recurrent_of(n, Kind::rnn); }, slots}},
  };
}

}  // namespace pleat::onnx::imported
