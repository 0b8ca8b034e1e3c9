// Recurrent networks.

#include <algorithm>
#include <cmath>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/recurrent/recurrent.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

/// h and c of one sequence and unit.
struct State {
  double h, c;
};

/// The textbook's step. a(k): the input's part for gate k; u(k): that of the state.
State step(RecurrentCell cell, const std::function<double(int64_t)>& a,
           const std::function<double(int64_t)>& u, State s) {
  if (cell == RecurrentCell::lstm) {
    const double c = sigmoid(a(1) + u(1)) * s.c + sigmoid(a(0) + u(0)) * std::tanh(a(2) + u(2));
    return {sigmoid(a(3) + u(3)) * std::tanh(c), c};
  }
  if (cell == RecurrentCell::gru) {
    const double z = sigmoid(a(1) + u(1));
    return {(1 - z) * std::tanh(a(2) + sigmoid(a(0) + u(0)) * u(2)) + z * s.h, 0};
  }
  const double sum = a(0) + u(0);
  return {cell == RecurrentCell::rnn_tanh ? std::tanh(sum) : std::max(sum, 0.0), 0};
}

/// x: projected, w_hh, b_hh, h, c.
Arrays network(const Arrays& x, RecurrentCell cell, bool reverse, const Index& lengths) {
  const int64_t steps = x[0].size(0), batch = x[0].size(1), width = x[1].size(1);
  Array y = computed({steps, batch, width}, [](const Index&) { return 0.0; });
  Array h = x[3];
  Array c = cell == RecurrentCell::lstm ? x[4] : h;
  for (int64_t n = 0; n < batch; ++n) {
    const int64_t length = lengths.empty() ? steps : lengths[static_cast<std::size_t>(n)];
    for (int64_t i = 0; i < length; ++i) {
      const int64_t t = reverse ? length - 1 - i : i;
      const Array before = h;
      for (int64_t j = 0; j < width; ++j) {
        const auto a = [&](int64_t k) { return x[0]({t, n, k * width + j}); };
        const auto u = [&](int64_t k) {
          double sum = x[2]({k * width + j});
          for (int64_t m = 0; m < width; ++m) sum += x[1]({k * width + j, m}) * before({n, m});
          return sum;
        };
        const State after = step(cell, a, u, {before({n, j}), c({n, j})});
        y({t, n, j}) = h({n, j}) = after.h;
        c({n, j}) = after.c;
      }
    }
  }
  return cell == RecurrentCell::lstm ? Arrays{y, h, c} : Arrays{y, h};
}

Tensors inputs(RecurrentCell cell, int64_t steps, int64_t batch, int64_t width) {
  const int64_t rows = gates_of(cell) * width;
  Tensors x = {normal({steps, batch, rows}), normal({rows, width}, 2), normal({rows}, 3),
               normal({batch, width}, 4)};
  if (cell == RecurrentCell::lstm) x.push_back(normal({batch, width}, 5));
  return x;
}

Outputs run(T x, const RecurrentOptions& options) {
  const RecurrentResult y = recurrent(x[0], x[1], x[2], x[3], x.size() > 4 ? x[4] : Tensor(), options);
  return y.c.defined() ? Tensors{y.output, y.h, y.c} : Tensors{y.output, y.h};
}

OpCase network_case(const std::string& variant, const char* recorded, RecurrentCell cell, bool reverse,
                    const Index& lengths = {}) {
  const auto call = [=](T x) {
    RecurrentOptions options{.cell = cell, .reverse = reverse};
    if (!lengths.empty()) options.lengths = from_vector(lengths, {std::ssize(lengths)});
    return run(x, options);
  };
  return {.name = "recurrent",
          .inputs = inputs(cell, 4, 3, 5),
          .call = call,
          .reference = [=](const Arrays& x) { return network(x, cell, reverse, lengths); },
          .variant = variant,
          .smooth = {inputs(cell, 3, 3, 2)},
          .slack = 16,  // errors of a state go through the steps behind it
          .large = lengths.empty() ? inputs(cell, 3, 70, 40) : Tensors{},
          .recorded = recorded};
}

Refusal refused(const std::function<void(Tensors&)>& change, const RecurrentOptions& options,
                const char* words) {
  Tensors x = inputs(RecurrentCell::lstm, 4, 3, 5);
  change(x);
  return {x, [options](T t) { return run(t, options); }, words};
}

std::vector<OpCase> make() {
  using enum RecurrentCell;
  std::vector<OpCase> cases = {network_case("", "lstm", lstm, false),
                               network_case("lstm, reverse", "lstm", lstm, true),
                               network_case("lstm, lengths", "lstm", lstm, false, {2, 0, 3}),
                               network_case("lstm, reverse, lengths", "lstm", lstm, true, {2, 3, 1}),
                               network_case("gru", "gru", gru, false),
                               network_case("gru, reverse, lengths", "gru", gru, true, {2, 0, 3}),
                               network_case("tanh", "rnn", rnn_tanh, false),
                               network_case("relu, lengths", "rnn", rnn_relu, false, {3, 1, 2})};
  const auto same = [](Tensors&) {};
  const auto lengths = [](const Tensor& t) { return RecurrentOptions{.lengths = t}; };
  cases[0].refused = {
      refused(
          [](Tensors& x) {
            x[0] = normal({4, 20});
          },
          {}, "lstm: the projected input must be [steps, batch, 4"),
      refused(
          [](Tensors& x) {
            x[0] = normal({4, 3, 18});
          },
          {}, "lstm: the projected input must be"),
      refused(
          [](Tensors& x) {
            x[0] = normal({0, 3, 20});
          },
          {}, "of at least one step"),
      refused(
          [](Tensors& x) {
            x[0] = integers({4, 3, 20}, 0, 3);
          },
          {}, "lstm: the projected input must be floating"),
      refused(
          [](Tensors& x) {
            x[1] = normal({20, 4});
          },
          {}, "lstm: w_hh must be [20, 5]"),
      {{normal({4, 3, 20})},
       [](T x) { return recurrent(x[0], {}).h; },
       "lstm: needs the weight of the state, w_hh"},
      refused([](Tensors& x) { x[1] = x[1].to(float32); }, {}, "they must be of one type"),
      refused([](Tensors& x) { x[2] = normal({5}); }, {}, "lstm: b_hh must be [20]"),
      refused(
          [](Tensors& x) {
            x[3] = normal({1, 3, 5});
          },
          {}, "lstm: the state h must be [3, 5]"),
      refused(
          [](Tensors& x) {
            x[4] = normal({3, 4});
          },
          {}, "lstm: the state c must be [3, 5]"),
      refused(
          [](Tensors& x) {
            x[0] = normal({4, 3, 15});
            x[1] = normal({15, 5});
            x[2] = normal({15});
          },
          {.cell = gru}, "gru: only lstm has a state c"),
      refused(same, lengths(normal({3})), "lstm: lengths must be integers"),
      refused(same, lengths(integers({4}, 1, 3)), "lstm: lengths must be [3], one a sequence"),
      refused(same, lengths(integers({3}, 5, 6)), "lstm: lengths must be 0 to 4, got 5"),
      refused(same, lengths(integers({3}, -1, 0)), "lstm: lengths must be 0 to 4, got -1")};
  return cases;
}

}  // namespace

const std::vector<OpCase>& recurrent_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
