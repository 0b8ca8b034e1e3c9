#include "pleat/nn/parametrizations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/inference/inference.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat::test::relative_error;

namespace {

nn::Linear example_layer() {
  nn::Linear layer{{.in_features = 3, .out_features = 2}};
  layer.to(float64);
  const NoGrad off_the_tape;
  copy_(layer.weight, tensor({{1.0, 2.0, -3.0}, {0.5, -0.25, 4.0}}));
  copy_(layer.bias, tensor({0.1, -0.2}, float64));
  return layer;
}

Tensor example_input() { return tensor({{1.0, -2.0, 0.5}, {0.25, 3.0, -1.0}}).to(float64); }

/// Sets a tensor to numbers, off the tape.
void set(const Tensor& t, const std::vector<double>& values) {
  const NoGrad off_the_tape;
  copy_(t, reshape(from_vector(values), t.shape()));
}

double error_of(const Tensor& t, const std::vector<double>& values) {
  return relative_error(t, reshape(from_vector(values), t.shape()));
}

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.state_dict()) names.push_back(name);
  return names;
}

}  // namespace

// Values of PyTorch 2.15.
TEST_CASE("WeightNorm: values and gradients are PyTorch's, for each dim") {
  struct Case {
    std::optional<int64_t> dim;
    Shape magnitudes;
    std::vector<double> dg, dv;
  };
  const std::vector<Case> cases = {
      {0,
       {2, 1},
       {85.092638659392, 22.7345255069013},
       {-43.5816964285714, 97.4491071428571, 50.4388392857143, 3.32517959770115, -87.9266522988506,
        -5.91106321839082}},
      {-1,
       {1, 3},
       {-3.39602824082781, 117.042276426742, 35.62},
       {-4.9125, -8.53269230769234, -19.842, 9.825, -68.2615384615385, -14.8815}},
      {std::nullopt,
       {},
       {74.5065928226053},
       {-29.7677706185567, 125.076958762887, 8.99706185567011, -2.60263530927835, -84.9627448453608,
        -53.3335824742268}},
  };
  for (const Case& c : cases) {
    const nn::Linear layer = example_layer();
    nn::WeightNorm norm{nn::clone(layer), {.dim = c.dim}};
    CHECK(relative_error(norm(example_input()), nn::clone(layer)(example_input())) < 1e-14);
    CHECK(norm.g.shape() == c.magnitudes);
    set(norm.g, (norm.g * 1.5).to_vector<double>());
    const Tensor y = norm(example_input());
    CHECK(error_of(y, {-6.65, 4.3, 13.975, -7.1375}) < 1e-13);
    sum(square(y)).backward();
    CHECK(error_of(norm.g.grad(), c.dg) < 1e-13);
    CHECK(error_of(norm.v.grad(), c.dv) < 1e-13);
  }
}

TEST_CASE("SpectralNorm: values, gradients and vectors are PyTorch's") {
  nn::SpectralNorm norm{example_layer()};
  set(norm.u, {std::sqrt(0.5), std::sqrt(0.5)});
  set(norm.v, {std::sqrt(0.5), 0, -std::sqrt(0.5)});
  const std::vector<double> y{-0.767688931308419, 0.378459287538946, 1.88358280324508, -1.09179140162254};
  const Tensor result = norm(example_input());
  CHECK(error_of(result, y) < 1e-13);
  sum(square(result)).backward();
  CHECK(error_of(norm.original.grad(), {-0.238072448827813, 2.28365295380502, 0.55405640636287,
                                        0.148854472840371, -1.12836027486255, -0.755895386207358}) < 1e-13);
  const std::vector<double> u{0.752576694706878, -0.658504607868518},
      v{0.0816253084947291, 0.321966494618098, -0.943225787050203};
  CHECK(error_of(norm.u, u) < 1e-13);
  CHECK(error_of(norm.v, v) < 1e-13);
  norm.eval();
  CHECK(error_of(norm(example_input()), y) < 1e-13);
  CHECK(error_of(norm.u, u) < 1e-13);

  nn::ConvTranspose1d conv{{.in_channels = 2, .out_channels = 3, .kernel_size = 2, .bias = false}};
  conv.to(float64);
  set(conv.weight, (arange(12.0).to(float64) - 5).to_vector<double>());
  nn::SpectralNorm of_conv{conv, {.n_power_iterations = 2}};
  CHECK(of_conv.u.shape() == Shape{3});
  set(of_conv.u, (tensor({1.0, 2.0, 3.0}).to(float64) / std::sqrt(14.0)).to_vector<double>());
  set(of_conv.v, (tensor({1.0, 0.0, -1.0, 1.0}).to(float64) / std::sqrt(3.0)).to_vector<double>());
  CHECK(error_of(
            of_conv(reshape(tensor({1.0, -1.0, 0.5, 2.0}).to(float64), {1, 2, 2})),
            {-0.430725342168754, 0.382866970816671, 0.765733941633341, -0.143575114056251, 0.861450684337509,
             0.957167427041676, 0.143575114056251, 1.34003439785835, 1.14860091245001}) < 1e-13);
  CHECK(error_of(of_conv.u, {-0.678282559695489, -0.570618661331125, -0.462954762966762}) < 1e-13);
}

TEST_CASE("SpectralNorm: the first weight already has a largest singular value near 1") {
  nn::SpectralNorm norm{nn::Linear{{.in_features = 8, .out_features = 5}}};
  norm.to(float64);
  for (int i = 0; i < 200; ++i) norm(ones({1, 8}, float64));
  norm.eval();
  const Tensor w = norm.weight();
  // The largest eigenvalue of w w^T, by the trace of a high power of it.
  Tensor power = matmul(w, transpose(w, 0, 1));
  for (int i = 0; i < 8; ++i) power = matmul(power, power);
  CHECK(std::abs(std::pow(sum(diagonal(power)).item(), 1 / 256.0) - 1) < 1e-2);
  nn::SpectralNorm vector{nn::PReLU{{.num_parameters = 3}}};
  CHECK(relative_error(vector.weight(), full({3}, 1 / std::sqrt(3.0), vector.weight().dtype())) < 1e-6);
  CHECK(names_of(vector) == std::vector<std::string>{"parametrizations.weight.original"});
}

TEST_CASE("WeightNorm and SpectralNorm: names, text, copies, states, moves to other types") {
  nn::WeightNorm weight{example_layer()};
  CHECK(names_of(weight) == std::vector<std::string>{"bias", "parametrizations.weight.original0",
                                                     "parametrizations.weight.original1"});
  CHECK(nn::to_string(weight) == "WeightNorm(Linear(3, 2), dim=0)");
  nn::SpectralNorm spectral{example_layer()};
  CHECK(names_of(spectral) == std::vector<std::string>{"bias", "parametrizations.weight.0._u",
                                                       "parametrizations.weight.0._v",
                                                       "parametrizations.weight.original"});
  CHECK(spectral.named_buffers().size() == 2);
  nn::Sequential net{weight, nn::ReLU{}, nn::SpectralNorm{nn::Linear{{.in_features = 2, .out_features = 2}}}};
  net.to(float64);
  nn::Sequential own = nn::clone(net);
  CHECK(own.get<nn::WeightNorm<nn::Linear>>(0).g.impl().id != weight.g.impl().id);
  own.load_state_dict(net.state_dict());
  net.eval();
  own.eval();
  const Tensor x = example_input();
  CHECK(relative_error(own(x), net(x)) == 0);
  const NoGrad off_the_tape;
  Inference engine(net, x);
  CHECK(relative_error(engine(x), net(x)) < 1e-14);
  net.to(float32);
  CHECK(net(x.to(float32)).dtype() == float32);
}

TEST_CASE("WeightNorm and SpectralNorm: gradients by differences, of all they are for") {
  const auto check = [](auto wrap, auto layer, const Tensor& x) {
    auto norm = wrap(std::move(layer));
    norm.to(float64);
    norm.eval();
    const auto f = [&](const std::vector<Tensor>& in) {
      auto part = norm;
      if constexpr (requires { part.g; })
        part.g = in[0], part.v = in[1];
      else
        part.original = in[0];
      return part.weight() * in.back();
    };
    std::vector<Tensor> inputs;
    for (const auto& [name, parameter] : norm.named_parameters())
      if (name != "bias") inputs.push_back(parameter.detach());
    inputs.push_back(randn(norm.weight().shape(), float64));
    CHECK(gradcheck(f, inputs));
    CHECK(gradgradcheck(f, inputs));
    sum(norm(x)).backward();
    for (const Tensor& parameter : norm.parameters()) CHECK(parameter.grad().defined());
  };
  const auto all = [&](auto wrap) {
    manual_seed(3);
    check(wrap, nn::Linear{{.in_features = 3, .out_features = 2}}, randn({2, 3}, float64));
    check(wrap, nn::Conv2d{{.in_channels = 2, .out_channels = 3, .kernel_size = 2}},
          randn({1, 2, 3, 3}, float64));
    check(wrap, nn::ConvTranspose1d{{.in_channels = 2, .out_channels = 3, .kernel_size = 2}},
          randn({1, 2, 3}, float64));
    check(wrap, nn::Embedding{{.num_embeddings = 3, .embedding_dim = 2}}, tensor({2, 0}));
  };
  all([](auto layer) { return nn::WeightNorm{std::move(layer)}; });
  all([](auto layer) { return nn::WeightNorm{std::move(layer), {.dim = std::nullopt}}; });
  all([](auto layer) { return nn::SpectralNorm{std::move(layer)}; });
}

TEST_CASE("SpectralNorm: two calls before one backward, a checkpoint, and a training") {
  nn::SpectralNorm norm{nn::Linear{{.in_features = 3, .out_features = 2}}};
  const Tensor x = example_input().to(float32);
  sum(norm(x) + norm(2 * x)).backward();
  sum(checkpoint([&](const Tensor& input) { return norm(input); }, x)).backward();
  CHECK(std::abs(sum(square(norm.u)).item() - 1) < 1e-5);
  optim::SGD sgd{norm.parameters(), {.lr = 0.1}};
  for (int i = 0; i < 20; ++i) {
    sgd.zero_grad();
    mean(square(norm(x) - 1)).backward();
    sgd.step();
  }
  norm.eval();
  CHECK(pleat::norm(norm.weight()).item() < 1.5);  // the root of the sum of 2 squares up to 1
}

TEST_CASE("WeightNorm and SpectralNorm: threads may call one at once in evaluation mode") {
  nn::Sequential net{nn::WeightNorm{example_layer()},
                     nn::SpectralNorm{nn::Linear{{.in_features = 2, .out_features = 2}}}};
  net.to(float64);
  net.eval();
  const Tensor x = example_input(), expected = net(x);
  std::array<double, 4> errors{};
  std::vector<std::thread> threads;
  for (double& error : errors)
    threads.emplace_back([&] {
      const NoGrad off_the_tape;
      for (int i = 0; i < 50; ++i) error = std::max(error, relative_error(net(x), expected));
    });
  for (std::thread& thread : threads) thread.join();
  for (const double error : errors) CHECK(error < 1e-14);
}

TEST_CASE("WeightNorm and SpectralNorm: what they cannot wrap is an error") {
  CHECK_THROWS_WITH((nn::WeightNorm{example_layer(), {.dim = 2}}),
                    Contains("WeightNorm: dim must be one of the weight [2, 3], got 2"));
  CHECK_THROWS_AS((nn::SpectralNorm{example_layer(), {.dim = -3}}), IndexError);
  CHECK_THROWS_AS((nn::SpectralNorm{example_layer(), {.n_power_iterations = 0}}), ValueError);
  CHECK_THROWS_AS((nn::SpectralNorm{example_layer(), {.eps = -1}}), ValueError);
  nn::Linear hooked = example_layer();
  hooked.register_forward_hook(
      [](nn::Module&, const std::vector<Tensor>&, const Tensor&) { return Tensor(); });
  CHECK_THROWS_WITH(nn::WeightNorm{hooked}, Contains("has hooks, which would not be called"));
  nn::LayerNorm plain{{.normalized_shape = 3, .elementwise_affine = false}};
  CHECK_THROWS_WITH(nn::WeightNorm{plain}, Contains("must have a floating weight"));
}
