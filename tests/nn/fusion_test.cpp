#include "pleat/nn/fusion.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

nn::BatchNorm2d norm(int64_t channels = 3) { return nn::BatchNorm2d{{.num_features = channels}}; }

/// Names of functions and modules, in the order in which they began.
std::vector<std::string> ranges(nn::Module& module, const Tensor& x) {
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  module(x);
  profiler.stop();
  std::vector<std::string> names;
  for (const profile::Event& event : profiler.profile().events)
    // Casts of parameters depend on the device, views on the layout.
    if ((event.kind == RangeKind::module || event.kind == RangeKind::op) && event.name != "cast" &&
        event.name != "permute")
      names.push_back(event.name);
  return names;
}

using Names = std::vector<std::string>;

struct Derived : nn::BatchNorm2d {
  Derived() : nn::BatchNorm2d({.num_features = 3}) {}
  Tensor forward(const Tensor& x) override { return nn::BatchNorm2d::forward(x) - 1; }
};

struct Log : nn::ForwardObserver {
  void enter(nn::Module&, const Tensor&) override {}
  void leave(nn::Module& module, const Tensor& input, const Tensor& output) override {
    types.push_back(module.type_name());
    if (module.type_name() == "ReLU") negative_input = min(input).item() < 0;
    if (module.type_name() == "BatchNorm2d") negative_norm = min(output).item() < 0;
  }
  Names types;
  bool negative_input = false, negative_norm = false;
};

/// Result, gradients, and running statistics after two steps.
std::vector<Tensor> trained(const Tensor& input, bool enabled,
                            const std::function<std::unique_ptr<nn::Module>()>& make) {
  manual_seed(5);
  const nn::FusionPolicy policy{{.enabled = enabled}};
  const auto net = make();
  // A norm behind a norm and a ReLU takes away what the first one's weight scales, where its bias is 0: the
  // gradient of that weight would be rounding.
  {
    const NoGrad off_the_tape;
    for (const auto& [name, t] : net->named_parameters()) add_(t, randn(t.shape()) * 0.3);
  }
  const Tensor x = input.clone().detach().set_requires_grad();
  std::vector<Tensor> all;
  for (int step = 0; step < 2; ++step) {
    const Tensor y = (*net)(x);
    sum(y * y * y).backward();
    all.push_back(y.detach());
  }
  all.push_back(x.grad());
  for (const auto& [name, t] : net->named_parameters()) all.push_back(t.grad());
  for (const auto& [name, t] : net->named_buffers()) all.push_back(t);
  return all;
}

/// Results, gradients and statistics are those of single modules.
void check_alike(const Tensor& x, const std::function<std::unique_ptr<nn::Module>()>& make, double bound) {
  const auto fused = trained(x, true, make);
  const auto apart = trained(x, false, make);
  REQUIRE(fused.size() == apart.size());
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CAPTURE(i);
    CHECK(test::relative_error(ops::cast(fused[i], float64), ops::cast(apart[i], float64)) < bound);
  }
}

/// Without a bias, whose gradient before a batch norm is rounding alone.
nn::Conv2d conv(int64_t in, int64_t out, const char* implementation = "", int64_t padding = 1) {
  return nn::Conv2d{{.in_channels = in,
                     .out_channels = out,
                     .kernel_size = 3,
                     .padding = padding,
                     .bias = false,
                     .implementation = implementation}};
}

}  // namespace

TEST_CASE("fusion: a sequence computes a ReLU with the batch norm before it", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  nn::Sequential net{norm(), nn::ReLU{}, norm(), nn::Identity{}, nn::ReLU{}};
  CHECK(ranges(net, x) == Names{"Sequential", "BatchNorm2d", "batch_norm", "ReLU", "BatchNorm2d",
                                "batch_norm", "Identity", "ReLU", "relu"});
  nn::Sequential bounded{norm(), nn::ReLU6{}, norm(), nn::Hardtanh{{.max = 2}}};
  CHECK(ranges(bounded, x) ==
        Names{"Sequential", "BatchNorm2d", "batch_norm", "ReLU6", "BatchNorm2d", "batch_norm", "Hardtanh"});
  const nn::FusionPolicy apart{{.enabled = false}};
  CHECK(ranges(net, x) == Names{"Sequential", "BatchNorm2d", "batch_norm", "ReLU", "relu", "BatchNorm2d",
                                "batch_norm", "Identity", "ReLU", "relu"});
}

TEST_CASE("fusion: a residual computes addition and ReLU with the last batch norm of its body", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  nn::Residual block{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()},
                      .shortcut = nn::Sequential{norm()},
                      .activation = nn::ReLU{}}};
  CHECK(ranges(block, x) == Names{"Residual", "Sequential", "BatchNorm2d", "batch_norm", "Sequential",
                                  "BatchNorm2d", "batch_norm", "ReLU", "BatchNorm2d", "batch_norm", "ReLU"});
  nn::Residual bounded{{.body = norm(), .activation = nn::ReLU6{}}};
  CHECK(ranges(bounded, x) == Names{"Residual", "BatchNorm2d", "batch_norm", "ReLU6"});
  nn::Residual other{{.body = norm(), .activation = nn::Sigmoid{}}};
  CHECK(ranges(other, x) == Names{"Residual", "BatchNorm2d", "batch_norm", "Sigmoid", "sigmoid"});
}

TEST_CASE("fusion: what may be another function is left alone", "[nn]") {
  const Tensor x = randn({2, 3, 4, 4});
  const auto has = [](const Names& names, const char* name) { return std::ranges::count(names, name) > 0; };
  nn::Sequential derived{Derived(), nn::ReLU{}};
  CHECK(has(ranges(derived, x), "relu"));
  nn::Sequential twice{nn::BatchNorm2d{{.num_features = 3, .bounds = {.min = 0}}}, nn::ReLU6{}};
  CHECK(has(ranges(twice, x), "hardtanh"));
  nn::Residual closed{{.body = nn::BatchNorm2d{{.num_features = 3, .bounds = {.min = 0}}}}};
  CHECK(has(ranges(closed, x), "add"));
  nn::Residual behind{{.body = nn::Sequential{norm(), nn::ReLU{}}, .activation = nn::ReLU{}}};
  CHECK(has(ranges(behind, x), "add"));
  CHECK(has(ranges(behind, x), "relu"));
  nn::Residual uneven{{.body = norm(), .shortcut = [](const Tensor& t) { return slice(t, 3, 0, 1); }}};
  CHECK_THROWS_WITH(uneven(x), Contains("Residual: body and shortcut must give one shape"));
  nn::Residual widened{{.body = norm(), .shortcut = [](const Tensor& t) { return t.to(float64); }}};
  CHECK(widened(x).dtype() == float64);
}

TEST_CASE("fusion: observers see every module with its own result", "[nn]") {
  nn::Sequential net{nn::Residual{{.body = nn::Sequential{norm()}, .activation = nn::ReLU{}}}};
  const Tensor x = randn({2, 3, 4, 4});
  Log log;
  net(x);
  CHECK(log.types == Names{"BatchNorm2d", "Sequential", "ReLU", "Residual", "Sequential"});
  CHECK(log.negative_input);
  CHECK(log.negative_norm);
}

TEST_CASE("fusion: results, gradients and statistics are those of single modules", "[nn]") {
  const auto sequence = [] {
    return std::make_unique<nn::Sequential>(norm(), nn::ReLU{}, norm(), nn::ReLU{}, norm());
  };
  const auto block = [] {
    return std::make_unique<nn::Sequential>(
        nn::Residual{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()}, .activation = nn::ReLU{}}},
        nn::Residual{{.body = nn::Sequential{norm(), nn::ReLU{}, norm()},
                      .shortcut = norm(),
                      .activation = nn::ReLU{}}},
        nn::Residual{{.body = norm()}});
  };
  const auto bounded = [] {
    return std::make_unique<nn::Sequential>(
        norm(), nn::ReLU6{}, norm(), nn::Hardtanh{{.min = -0.75, .max = 0.5}},
        nn::Residual{{.body = nn::Sequential{norm(), nn::ReLU6{}, norm()}, .activation = nn::Hardtanh{}}});
  };
  check_alike(randn({3, 3, 5, 4}), sequence, 1e-5);
  check_alike(randn({3, 3, 5, 4}) * 4, bounded, 1e-5);
  check_alike(randn({3, 3, 5, 4}), block, 1e-5);
}

TEST_CASE("fusion: convolutions read what a batch norm has not written", "[nn][cpu]") {
  // Sizes that leave parts of tiles, and channels parts of vectors.
  const Tensor x = randn({2, 16, 9, 7}).to(MemoryFormat::channels_last);
  const auto names = [&](const char* implementation) {
    nn::Sequential net{conv(16, 24), norm(24), nn::ReLU{}, conv(24, 17, implementation), norm(17)};
    return ranges(net, x);
  };
  CHECK(names("winograd") == Names{"Sequential", "Conv2d", "conv2d", "BatchNorm2d", "batch_norm", "ReLU",
                                   "Conv2d", "norm_act_conv2d", "conv2d", "BatchNorm2d", "batch_norm"});
  CHECK(names("reference") == Names{"Sequential", "Conv2d", "conv2d", "BatchNorm2d", "batch_norm", "ReLU",
                                    "Conv2d", "norm_act_conv2d", "conv2d", "batch_norm", "BatchNorm2d",
                                    "batch_norm"});
}

TEST_CASE("fusion: chains of convolutions and batch norms train like single modules", "[nn][cpu]") {
  const auto chain = [](const char* implementation) {
    return [=] {
      return std::make_unique<nn::Sequential>(conv(16, 24, implementation), norm(24), nn::ReLU{},
                                              conv(24, 17, implementation), norm(17), nn::ReLU{},
                                              conv(17, 33, implementation), norm(33), nn::Hardtanh{},
                                              conv(33, 16, implementation), nn::ReLU{}, norm(16));
    };
  };
  for (const char* implementation : {"winograd:f2", "winograd:f4", "direct", "unfold", ""}) {
    CAPTURE(implementation);
    check_alike(randn({3, 16, 9, 7}).to(MemoryFormat::channels_last), chain(implementation), 2e-5);
    check_alike(randn({2, 16, 8, 8}), chain(implementation), 2e-5);
  }
  // A batch norm in the body of a block, read by a pool, by two modules, and not in training.
  check_alike(
      randn({2, 16, 8, 8}).to(MemoryFormat::channels_last),
      [] {
        const auto shared = std::make_shared<nn::Sequential>(conv(16, 16), norm(16), nn::ReLU{});
        auto net = std::make_unique<nn::Sequential>(
            conv(16, 16), norm(16), nn::ReLU{},
            nn::Residual{{.body = nn::Sequential{conv(16, 16), norm(16), nn::ReLU{}, conv(16, 16), norm(16)},
                          .activation = nn::ReLU{}}},
            conv(16, 16), norm(16), nn::MaxPool2d{{.kernel_size = 2}}, nn::Sigmoid{}, norm(16), conv(16, 16));
        (*net)[5].train(false);
        return net;
      },
      2e-5);
}

TEST_CASE("fusion: inverted residuals train like single modules", "[nn][cpu]") {
  const auto pointwise = [](int64_t in, int64_t out) {
    return nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = 1, .bias = false}};
  };
  const auto depthwise = [](int64_t channels, int64_t stride) {
    return nn::Conv2d{{.in_channels = channels,
                       .out_channels = channels,
                       .kernel_size = 3,
                       .stride = stride,
                       .padding = 1,
                       .groups = channels,
                       .bias = false}};
  };
  // Without activations that bend everywhere some gradients would be rounding alone.
  const auto act = [] { return nn::Hardtanh{{.min = -0.5, .max = 0.75}}; };
  const auto net = [&] {
    return std::make_unique<nn::Sequential>(
        nn::Residual{{.body = nn::Sequential{pointwise(17, 40), norm(40), act(), depthwise(40, 1), norm(40),
                                             act(), pointwise(40, 17), norm(17)},
                      .activation = nn::Sigmoid{}}},
        pointwise(17, 24), norm(24), act(), depthwise(24, 2), norm(24), act(), pointwise(24, 8), norm(8));
  };
  check_alike(randn({3, 17, 9, 12}).to(MemoryFormat::channels_last), net, 2e-5);
  check_alike(randn({3, 17, 9, 12}), net, 2e-5);
}

TEST_CASE("fusion: moments of a convolution's result bear a large mean", "[nn][cpu]") {
  // The mean is thousands of standard deviations: squares would leave nothing of the variance. The gradient
  // of the weight is what is left of sums that are as many times larger.
  const Tensor x = (randn({4, 16, 13, 11}) * 1e-4 + 1).to(MemoryFormat::channels_last);
  check_alike(
      x, [] { return std::make_unique<nn::Sequential>(conv(16, 20, "", 0), norm(20), conv(20, 16)); }, 3e-2);
}

TEST_CASE("fusion: gradients of gradients go through a norm that a convolution reads", "[nn][cpu]") {
  const auto second = [](bool enabled) {
    manual_seed(3);
    const nn::FusionPolicy policy{{.enabled = enabled}};
    nn::Sequential net{conv(16, 16), norm(16), nn::ReLU6{}, conv(16, 16)};
    const Tensor x = randn({2, 16, 6, 6}).to(MemoryFormat::channels_last).detach().set_requires_grad();
    const Tensor y = net(x);
    const Tensor dx = grad({sum(y * y)}, {x}, {}, {.create_graph = true})[0];
    sum(dx * dx).backward();
    return x.grad();
  };
  CHECK(test::relative_error(ops::cast(second(true), float64), ops::cast(second(false), float64)) < 1e-4);
}

TEST_CASE("fusion: a sequence computes an activation with the linear layer before it", "[nn][cpu]") {
  const auto layer = [] { return nn::Linear{{.in_features = 6, .out_features = 6}}; };
  const Tensor x = randn({4, 6});
  const auto names = [&](const nn::AnyModule& activation, const Tensor& input) {
    nn::Sequential net{layer(), activation};
    net.to(input.dtype());
    Names all = ranges(net, input);
    std::erase_if(all, [](const std::string& name) {
      return name == "view" || name == "transpose" || name == "reshape" || name == "expand";
    });
    return all;
  };
  for (const nn::AnyModule& activation : std::vector<nn::AnyModule>{
           nn::ReLU{}, nn::ReLU6{}, nn::Hardtanh{}, nn::GELU{}, nn::SiLU{}, nn::Tanh{}, nn::Sigmoid{}}) {
    const std::string name = activation.get().type_name();
    CHECK(names(activation, x) == Names{"Sequential", "Linear", "linear", name});
    CHECK(names(activation, x.to(float64)) == Names{"Sequential", "Linear", "linear", name});
    CHECK(names(activation, x.to(bfloat16)).size() > 4);  // apart
    const nn::FusionPolicy policy{{.enabled = false}};
    CHECK(names(activation, x).size() > 4);
  }
  CHECK(names(nn::Mish{}, x) == Names{"Sequential", "Linear", "linear", "Mish", "mish"});
  {
    const Autocast scope(bfloat16);
    CHECK(std::ranges::count(names(nn::GELU{}, x), "gelu") == 1);
  }
  struct Other : nn::Linear {
    Other() : nn::Linear({.in_features = 6, .out_features = 6}) {}
    Tensor forward(const Tensor& t) override { return nn::Linear::forward(t) - 1; }
  };
  nn::Sequential derived{Other(), nn::ReLU{}};
  CHECK(std::ranges::count(ranges(derived, x), "relu") == 1);
  // The last of an inner sequence.
  nn::Sequential nested{nn::Sequential{layer()}, nn::GELU{}};
  CHECK(std::ranges::count(ranges(nested, x), "gelu") == 0);
}

TEST_CASE("fusion: linear layers with activations train like single modules", "[nn][cpu]") {
  // Sizes that Eigen multiplies, those of panels, of many blocks, and such that the depth is cut.
  for (const auto& [rows, width] : std::vector<std::pair<int64_t, int64_t>>{{3, 7}, {40, 70}, {300, 130}}) {
    CAPTURE(rows, width);
    const auto net = [features = width](const nn::AnyModule& activation, bool bias) {
      return [=] {
        return std::make_unique<nn::Sequential>(
            nn::Linear{{.in_features = features, .out_features = 2 * features, .bias = bias}}, activation,
            nn::Linear{{.in_features = 2 * features, .out_features = features, .bias = bias}}, activation);
      };
    };
    const Tensor x = randn({2, rows, width}) * 3;
    for (const nn::AnyModule& activation : std::vector<nn::AnyModule>{
             nn::ReLU{}, nn::ReLU6{}, nn::Hardtanh{{.min = -0.5, .max = 0.75}}, nn::GELU{},
             nn::GELU{{.approximation = GeluApproximation::tanh}}, nn::SiLU{}, nn::Tanh{}, nn::Sigmoid{}}) {
      CAPTURE(activation.get().type_name());
      check_alike(x, net(activation, true), 1e-6);
      check_alike(x, net(activation, false), 1e-6);
    }
  }
  check_alike(
      randn({4, 9000}),
      [] {
        return std::make_unique<nn::Sequential>(nn::Linear{{.in_features = 9000, .out_features = 5}},
                                                nn::GELU{});
      },
      1e-6);
}

TEST_CASE("fusion: linear layers with activations can be differentiated twice", "[nn][cpu]") {
  for (const nn::AnyModule& activation : std::vector<nn::AnyModule>{
           nn::Hardtanh{{.min = -4, .max = 0.3}}, nn::GELU{}, nn::SiLU{}, nn::Tanh{}, nn::Sigmoid{}}) {
    CAPTURE(activation.get().type_name());
    nn::Linear layer{{.in_features = 3, .out_features = 4}};
    nn::Sequential net{layer, activation};
    net.to(float64);
    auto& own = static_cast<nn::Linear&>(net[0]);
    const auto f = [&](const std::vector<Tensor>& t) {
      own.weight = t[1];
      own.bias = t[2];
      const Tensor y = net(t[0]);
      return y * y;
    };
    const std::vector<Tensor> inputs = {randn({2, 3}, {.dtype = float64}), randn({4, 3}, {.dtype = float64}),
                                        randn({4}, {.dtype = float64})};
    CHECK(gradcheck(f, inputs));
    CHECK(gradgradcheck(f, inputs));
  }
}

TEST_CASE("fusion: an activation with a linear layer keeps NaN and infinities", "[nn][cpu]") {
  for (const nn::AnyModule& activation : std::vector<nn::AnyModule>{nn::ReLU{}, nn::Hardtanh{}, nn::GELU{},
                                                                    nn::SiLU{}, nn::Tanh{}, nn::Sigmoid{}}) {
    CAPTURE(activation.get().type_name());
    nn::Sequential net{nn::Linear{{.in_features = 1, .out_features = 1, .bias = false}}, activation};
    static_cast<nn::Linear&>(net[0]).weight = nn::parameter(ones({1, 1}));
    const double infinity = std::numeric_limits<double>::infinity();
    const Tensor x = unsqueeze(from_vector(std::vector<float>{std::nanf(""), static_cast<float>(infinity),
                                                              static_cast<float>(-infinity), -0.0f, 3.5f}),
                               1);
    const auto values = [&] { return net(x).to_vector<float>(); };
    const std::vector<float> fused = values();
    const nn::FusionPolicy policy{{.enabled = false}};
    const std::vector<float> apart = values();
    for (std::size_t i = 0; i < fused.size(); ++i) {
      CAPTURE(i);
      CHECK((fused[i] == apart[i] || (std::isnan(fused[i]) && std::isnan(apart[i]))));
    }
  }
}

TEST_CASE("linear_act is linear and the activation", "[ops]") {
  const std::vector<std::pair<Activation, std::function<Tensor(const Tensor&)>>> activations = {
      {Activation::relu, relu},
      {Activation::relu6, relu6},
      {Activation::gelu, [](const Tensor& x) { return gelu(x); }},
      {Activation::gelu_tanh, [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }},
      {Activation::silu, silu},
      {Activation::mish, mish},
      {Activation::hardswish, hardswish},
      {Activation::tanh, [](const Tensor& x) { return tanh(x); }},
      {Activation::sigmoid, sigmoid}};
  for (const DType dtype : {float32, float64, bfloat16})
    for (const auto& [activation, function] : activations) {
      CAPTURE(static_cast<int>(activation), dtype);
      const TensorOptions typed{.dtype = dtype};
      std::vector<Tensor> t = {randn({40, 30}, typed) * 2, randn({50, 30}, typed), randn({50}, typed)};
      for (Tensor& one : t) one = one.detach().set_requires_grad();
      const Tensor y = linear_act(t[0], t[1], t[2], activation), apart = function(linear(t[0], t[1], t[2]));
      const double bound = dtype == bfloat16 ? 2e-2 : 1e-5;
      const auto is_close = [&](const Tensor& a, const Tensor& b) {
        return test::relative_error(ops::cast(a, float64), ops::cast(b, float64)) < bound;
      };
      CHECK(is_close(y, apart));
      const std::vector<Tensor> gradients = grad({sum(y * y)}, t), expected = grad({sum(apart * apart)}, t);
      for (std::size_t i = 0; i < t.size(); ++i) CHECK(is_close(gradients[i], expected[i]));
    }
  CHECK_THROWS_WITH(
      linear_act(ones({2, 3}, {.dtype = int64}), ones({2, 3}, {.dtype = int64}), {}, Activation::relu),
      Contains("needs a floating input"));
}

TEST_CASE("a batch norm is called with a residual and bounds", "[nn]") {
  nn::BatchNorm2d one{{.num_features = 3}}, other = one;
  const Tensor x = randn({2, 3, 4, 4}), shortcut = randn({2, 3, 4, 4});
  CHECK(test::relative_error(ops::cast(one.forward(x, shortcut, {.min = 0}), float64),
                             ops::cast(relu(other(x) + shortcut), float64)) < 1e-5);
  CHECK(test::relative_error(ops::cast(one.forward(x, {}, {.min = 0, .max = 6}), float64),
                             ops::cast(relu6(other(x)), float64)) < 1e-5);
  CHECK(one.running_mean.to_vector<float>() == other.running_mean.to_vector<float>());
  CHECK_THROWS_WITH(one.forward(x, randn({2, 3, 4, 5}), {}), Contains("residual"));
  CHECK_THROWS_WITH(one.forward(x[0], {}, {}), Contains("unsqueeze"));
  one.function = [](const Tensor& a, const auto&...) { return a; };
  CHECK_THROWS_WITH(one.operands(), Contains("call the module"));
}
