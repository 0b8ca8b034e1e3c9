#include "pleat/nn/recurrent.h"

#include <array>
#include <cmath>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::Json;

namespace {

template <class M, class Options>
void check_networks(const char* op) {
  for (const Json& c : test::fixture_cases("recurrent", op)) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    Options options{.input_size = 3, .hidden_size = 2};
    options.num_layers = o.at("num_layers").get<int64_t>();
    options.bias = o.at("bias").get<bool>();
    options.batch_first = o.at("batch_first").get<bool>();
    options.bidirectional = o.at("bidirectional").get<bool>();
    if constexpr (requires { options.relu; }) options.relu = o.contains("nonlinearity");
    M network{options};
    Tensor lengths;
    if (const Json& l = o.at("lengths"); !l.is_null()) lengths = from_vector(l.get<std::vector<int64_t>>());
    test::check_module(c, network, [&](const test::Named& in) {
      const RecurrentResult y = network.forward(
          in.at("x"), {.h = test::find(in, "h"), .c = test::find(in, "c"), .lengths = lengths});
      return test::joined({y.output, y.h, y.c});
    });
  }
}

template <class M, class Options>
void check_cells(const char* op) {
  for (const Json& c : test::fixture_cases("recurrent", op)) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    Options options{.input_size = 3, .hidden_size = 2, .bias = o.at("bias").get<bool>()};
    if constexpr (requires { options.relu; }) options.relu = o.contains("nonlinearity");
    M cell{options};
    test::check_module(c, cell, [&](const test::Named& in) {
      const nn::RecurrentState y =
          cell.forward(in.at("x"), {.h = test::find(in, "h"), .c = test::find(in, "c")});
      return test::joined({y.h, y.c});
    });
  }
}

}  // namespace

TEST_CASE("recurrent networks and cells give PyTorch's values and gradients", "[recurrent]") {
  check_networks<nn::LSTM, nn::RecurrentModuleOptions>("LSTM");
  check_networks<nn::GRU, nn::RecurrentModuleOptions>("GRU");
  check_networks<nn::RNN, nn::RNNOptions>("RNN");
  check_cells<nn::LSTMCell, nn::RecurrentCellOptions>("LSTMCell");
  check_cells<nn::GRUCell, nn::RecurrentCellOptions>("GRUCell");
  check_cells<nn::RNNCell, nn::RNNCellOptions>("RNNCell");
}

TEST_CASE("a sequence beside longer ones gives what it gives alone", "[recurrent]") {
  nn::GRU network{{.input_size = 3, .hidden_size = 5, .num_layers = 2, .bidirectional = true}};
  network.to(float64);
  Generator generator(3);
  const Tensor x = randn({6, 3, 3}, {.dtype = float64}, generator);
  const auto all = network.forward(x, {.lengths = tensor({6, 2, 4})});
  const Tensor second = slice(x, 0, 0, 2);
  const auto alone = network.forward(narrow(second, 1, 1, 1), {});
  CHECK(test::relative_error(narrow(narrow(all.output, 1, 1, 1), 0, 0, 2), alone.output) < 1e-14);
  CHECK(test::relative_error(narrow(all.h, 1, 1, 1), alone.h) < 1e-14);
  CHECK(array_equal(narrow(narrow(all.output, 1, 1, 1), 0, 2, 4), zeros({4, 1, 10}, float64)));
}

TEMPLATE_TEST_CASE("a recurrent network gives the same bits for any number of threads, near float64's",
                   "[recurrent][cpu]", nn::LSTM, nn::GRU, nn::RNN) {
  const int before = num_threads();
  for (const auto& [width, batch, steps] : std::vector<std::array<int64_t, 3>>{
           {256, 1, 17}, {256, 1, 3}, {192, 3, 9}, {100, 37, 6}, {64, 70, 5}, {33, 2, 40}, {7, 300, 4}}) {
    CAPTURE(width, batch, steps);
    manual_seed(3);
    TestType net{{.input_size = 5, .hidden_size = width}};
    const Tensor x = randn({steps, batch, 5}).set_requires_grad(true), dy = randn({steps, batch, width});
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 3, 5, 16}) {
      set_num_threads(threads);
      std::vector<Tensor> of = net.parameters();
      of.push_back(x);
      const Tensor y = net(x);
      std::vector<Tensor> found = grad({y}, of, {dy});
      found.push_back(y);
      if (first.empty()) first = found;
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(array_equal(found[i], first[i]));
    }
    // Step by step, which takes no packed matrix.
    set_num_threads(1);
    TestType wide = clone(net);
    wide.to(float64);
    const Tensor inputs = x.detach().to(float64);
    RecurrentResult y;
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < steps; ++t) {
      y = wide.forward(narrow(inputs, 0, t, 1), {.h = y.h, .c = y.c});
      rows.push_back(y.output);
    }
    CHECK(test::relative_error(first.back(), cat(rows, 0)) < 1e-5);
  }
  set_num_threads(before);
}

TEST_CASE("layers of a recurrent network drop outputs between them in training only", "[recurrent]") {
  const Tensor x = ones({4, 2, 3});
  nn::LSTM network{{.input_size = 3, .hidden_size = 8, .num_layers = 2, .dropout = 0.5}};
  const Tensor first = network(x);
  CHECK_FALSE(array_equal(first, network(x)));
  network.eval();
  CHECK(array_equal(network(x), network(x)));
  nn::LSTM one{{.input_size = 3, .hidden_size = 8, .dropout = 0.5}};
  CHECK(array_equal(one(x), one(x)));  // the last layer's outputs stay
}

TEST_CASE("outputs of a recurrent network that are changed in place before backward are noticed",
          "[recurrent]") {
  nn::LSTM network{{.input_size = 3, .hidden_size = 2}};
  const Tensor y = network(ones({4, 2, 3}));
  y += 1;
  CHECK_THROWS_AS(sum(y).backward(), AutogradError);
}

TEST_CASE("gradients of gradients of a recurrent network reach operands that depend on one another",
          "[recurrent]") {
  // d/dx of x -> recurrent(x v, w x ...) by both ways must not count one twice: compared with differences.
  const auto f = [](const Tensor& t) {
    return recurrent(reshape(t, {2, 1, 2}), reshape(t, {2, 2}), {}, narrow(reshape(t, {2, 2}), 0, 0, 1), {},
                     {.cell = RecurrentCell::rnn_tanh});
  };
  const auto slope = [&](const Tensor& at) {
    const Tensor t = at.detach().set_requires_grad();
    return std::pair{t, grad({sum(f(t).output)}, {t}, {}, {.create_graph = true})[0]};
  };
  const Tensor at = tensor({0.3, -0.2, 0.5, 0.1}, float64);
  const auto [t, g] = slope(at);
  const Tensor second = grad({sum(g)}, {t})[0];
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor step = zeros({4}, float64);
    ops::fill(step.as_strided({1}, {1}, i), 1e-5);
    const double difference = (sum(slope(at + step).second) - sum(slope(at - step).second)).item() / 2e-5;
    CHECK(second.to_vector<double>()[static_cast<std::size_t>(i)] == Approx(difference).epsilon(1e-6));
  }
}

TEST_CASE("recurrent networks compute half types in float32 and are cast by Autocast", "[recurrent]") {
  nn::LSTM network{{.input_size = 3, .hidden_size = 4}};
  const Tensor x = randn({5, 2, 3});
  const Tensor y = network(x);
  {
    const Autocast guard{bfloat16};
    const auto [output, h, c] = network.forward(x, {});
    CHECK(output.dtype() == bfloat16);
    CHECK(h.dtype() == bfloat16);
    CHECK(test::relative_error(output, y.to_vector<double>()) < 0.02);
  }
  network.to(float16);
  CHECK(network(x.to(float16)).dtype() == float16);
}

TEST_CASE("recurrent layers of bfloat16 are near those of float64", "[recurrent]") {
  const auto cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::rnn_tanh);
  const bool reverse = GENERATE(false, true);
  const auto [steps, batch, width] =
      GENERATE(std::array<int64_t, 3>{1, 1, 5}, std::array<int64_t, 3>{7, 3, 33},
               std::array<int64_t, 3>{5, 9, 128}, std::array<int64_t, 3>{6, 130, 64});
  CAPTURE(static_cast<int>(cell), reverse, steps, batch, width);
  const int64_t gates = cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
  manual_seed(5);
  const std::vector<Tensor> operands{randn({steps, batch, gates * width}),
                                     randn({gates * width, width}) / std::sqrt(static_cast<double>(width)),
                                     randn({gates * width}), randn({batch, width})};
  const Tensor weights = randn({steps, batch, width});
  std::vector<int64_t> lengths(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<int64_t>(i * i + 1) % (steps + 1);
  std::vector<std::vector<Tensor>> found;
  for (const DType dtype : {float64, bfloat16}) {
    std::vector<Tensor> x;
    for (const Tensor& operand : operands)
      x.push_back(operand.to(bfloat16).to(dtype).detach().set_requires_grad());
    const RecurrentResult y = recurrent(x[0], x[1], x[2], x[3], {},
                                        {.cell = cell, .reverse = reverse, .lengths = from_vector(lengths)});
    (sum(y.output.to(float64) * weights) + sum(y.h.to(float64))).backward();
    found.push_back({y.output, y.h, x[0].grad(), x[1].grad(), x[2].grad(), x[3].grad()});
    for (const Tensor& t : found.back()) CHECK(t.dtype() == dtype);
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    CAPTURE(i);
    CHECK(test::relative_error(found[1][i], found[0][i].to_vector<double>()) < (i < 2 ? 6e-3 : 1.2e-2));
  }
}

TEST_CASE("an LSTM learns to add marked numbers", "[recurrent]") {
  manual_seed(1);
  nn::LSTM network{{.input_size = 2, .hidden_size = 16, .batch_first = true}};
  nn::Linear last{{.in_features = 16, .out_features = 1}};
  std::vector<Tensor> parameters = network.parameters();
  for (const Tensor& p : last.parameters()) parameters.push_back(p);
  optim::Adam optimizer(parameters, {.lr = 0.02});
  Generator generator(2);
  double loss_now = 1;
  for (int i = 0; i < 150; ++i) {
    const Tensor numbers = rand({32, 6}, {}, generator) - 0.5;
    const Tensor marks = (rand({32, 6}, {}, generator) > 0.5).to(float32);
    const Tensor y = last(select(network(stack({numbers, marks}, 2)), 1, 5));
    const Tensor loss = mean(square(squeeze(y, {1}) - sum(numbers * marks, {1})));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    loss_now = loss.item();
  }
  CHECK(loss_now < 0.02);  // 0.25 at the start
}

TEST_CASE("recurrent modules refuse bad options and inputs", "[recurrent]") {
  using nn::GRU, nn::LSTM, nn::RNN;
  CHECK_THROWS_WITH((LSTM{{.input_size = 0, .hidden_size = 2}}),
                    "LSTM: input_size must be at least 1, got 0");
  CHECK_THROWS_WITH((GRU{{.input_size = 2, .hidden_size = 0}}), "GRU: hidden_size must be at least 1, got 0");
  CHECK_THROWS_WITH((RNN{{.input_size = 2, .hidden_size = 2, .num_layers = 0}}),
                    "RNN: num_layers must be at least 1, got 0");
  CHECK_THROWS_WITH((LSTM{{.input_size = 2, .hidden_size = 2, .dropout = 1.5}}),
                    Contains("LSTM: dropout must be in [0, 1]"));
  CHECK_THROWS_WITH((nn::LSTMCell{{.input_size = 2, .hidden_size = 0}}),
                    "LSTMCell: hidden_size must be at least 1, got 0");
  LSTM lstm{{.input_size = 3, .hidden_size = 2, .num_layers = 2}};
  CHECK_THROWS_WITH(lstm(ones({4, 2, 5})), Contains("LSTM: the input must be [steps, batch, 3]"));
  CHECK_THROWS_WITH(lstm.forward(ones({4, 2, 3}), {.h = ones({1, 2, 2})}),
                    Contains("LSTM: the state h must be [2, 2, 2], got [1, 2, 2]"));
  CHECK_THROWS_WITH(lstm.forward(ones({4, 2, 3}), {.lengths = tensor({4, 5})}),
                    "lstm: lengths must be 0 to 4, got 5");
  GRU gru{{.input_size = 3, .hidden_size = 2}};
  CHECK_THROWS_WITH(gru.forward(ones({4, 2, 3}), {.c = ones({1, 2, 2})}), "GRU: only an LSTM has a state c");
  nn::GRUCell cell{{.input_size = 3, .hidden_size = 2}};
  CHECK_THROWS_WITH(cell(ones({4, 2})), Contains("GRUCell: the input must be [batch, 3] or [3]"));
  CHECK(nn::to_string(lstm).find("LSTM(3, 2, num_layers=2)") != std::string::npos);
}
