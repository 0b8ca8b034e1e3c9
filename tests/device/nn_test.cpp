// Modules, optimisers, state dictionaries, random numbers and creation on the other device.

#include "pleat/io/safetensors.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/multi_optimizer.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/upsample.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/nn/module_cases.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"
#include "pleat/tests/relative_error.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::test;

namespace {

/// Two of them are a few float32 roundings of each layer apart.
constexpr double float32_tolerance = 1e-5;

Tensor image() { return ops::cast(normal({2, 4, 6, 6}), float32); }

/// Output, gradients of parameters and input, and buffers of one step.
nn::StateDict step(nn::Module& module, const Tensor& input) {
  manual_seed(5);  // for dropout
  module.zero_grad();
  const Tensor x = input.detach();
  if (is_floating(x.dtype())) x.set_requires_grad();
  const Tensor y = module(x);
  y.backward(ops::to_device(ops::cast(normal(y.shape(), 9), float32), y.device()));
  nn::StateDict result{{"output", y.detach()}};
  for (const auto& [name, parameter] : module.named_parameters()) {
    REQUIRE(parameter.grad().defined());
    result["gradient of " + name] = parameter.grad();
  }
  if (x.requires_grad()) result["gradient of the input"] = x.grad();
  for (const auto& [name, buffer] : module.named_buffers()) result[name] = buffer;
  return result;
}

void check_agrees(const nn::StateDict& got, const nn::StateDict& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    CHECK(relative_error(got.at(name), tensor) <= tolerance);
  }
}

/// Trains and evaluates a module on either device.
void module_agrees(const std::function<std::unique_ptr<nn::Module>()>& make, const Tensor& x) {
  if (pleat_test::lacks_gpus()) return;
  for (const bool training : {true, false}) {
    CAPTURE(training);
    const auto here = make();
    const auto there = make();
    there->load_state_dict(here->state_dict());
    here->train(training);
    there->train(training);
    const nn::StateDict wanted = step(*here, x);
    const Device other(DeviceType::cuda);
    there->to(other);
    check_agrees(step(*there, ops::to_device(x, other)), wanted, float32_tolerance);
  }
}

nn::Sequential small_network() {
  return nn::Sequential{
      nn::Conv2d{{.in_channels = 4, .out_channels = 8, .kernel_size = 3, .padding = 1, .bias = false}},
      nn::BatchNorm2d{{.num_features = 8}},
      nn::ReLU{},
      nn::MaxPool2d{{.kernel_size = 2}},
      nn::Flatten{},
      nn::Linear{{.in_features = 72, .out_features = 5}},
  };
}

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Tensors&)>;

/// A network after some steps, and its optimiser's state.
nn::StateDict trained(const MakeOptimizer& make, Device device) {
  manual_seed(3);
  nn::Sequential net{nn::Linear{{.in_features = 6, .out_features = 8, .bias = false}}, nn::Tanh{},
                     nn::Linear{{.in_features = 8, .out_features = 4, .bias = false}}};
  net.to(float64);
  net.to(device);
  const auto optimizer = make(net.parameters());
  const Tensor x = ops::to_device(normal({16, 6}), device);
  const Tensor target = ops::to_device(integers({16}, 0, 4), device);
  for (int i = 0; i < 5; ++i) {
    const Tensor loss = cross_entropy(net(x), target);
    optimizer->zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 0.5});
    optimizer->step();
  }
  nn::StateDict result = nn::clone(net.state_dict());
  for (const auto& [name, tensor] : optimizer->state_dict()) result["optimiser: " + name] = tensor;
  return result;
}

void optimizer_agrees(const MakeOptimizer& make, double tolerance = 1e-11) {
  if (pleat_test::lacks_gpus()) return;
  const nn::StateDict wanted = trained(make, Device());
  const Device other(DeviceType::cuda);
  check_agrees(trained(make, other), wanted, tolerance);
}

}  // namespace

TEST_CASE("device: modules", "[device]") {
  for (const ModuleCase& c : module_cases()) {
    CAPTURE(c.name);
    manual_seed(1);
    const Tensor x = c.make_input();
    module_agrees([&c] { return c.make(); }, c.classes > 0 ? x : ops::cast(x, float32));
  }
}
TEST_CASE("device: a network of many kinds of modules", "[device]") {
  manual_seed(2);
  const nn::Sequential inner{nn::GELU{}, nn::Conv2d{{.in_channels = 6, .out_channels = 6, .kernel_size = 1}}};
  const nn::Sequential net{
      nn::Conv2d{{.in_channels = 4, .out_channels = 6, .kernel_size = 3}},
      nn::Residual{{.body = inner}},
      nn::Dropout{{.p = 0.3}},
      nn::Dropout2d{{.p = 0.3}},
      nn::Upsample{{.scale_factor = 2}},
      nn::AvgPool2d{{.kernel_size = 2}},
      nn::Softplus{},
      nn::AdaptiveAvgPool2d{{.output_size = 2}},
      nn::Flatten{},
      nn::LogSoftmax{{.dim = 1}},
  };
  module_agrees([&] { return std::make_unique<nn::Sequential>(nn::clone(net)); }, image());
}

TEST_CASE("device: optimisers", "[device]") {
  for (const OptimizerCase& c : optimizer_cases()) {
    CAPTURE(c.name);
    optimizer_agrees([&c](const Tensors& parameters) { return c.make(parameters, {.lr = 0.01}); });
  }
}
TEST_CASE("device: a multi-optimiser", "[device]") {
  optimizer_agrees([](const Tensors& parameters) {
    return std::make_unique<optim::MultiOptimizer>(
        optim::SGD{{parameters[0]}, optim::SGDOptions{.lr = 0.1}},
        optim::AdamW{{parameters[1]}, optim::AdamWOptions{.lr = 0.01}});
  });
}
TEST_CASE("device: clipping gradients", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const auto clipped = [](Device device) {
    Tensors parameters;
    for (const DType dtype : {float32, float64, float32, bfloat16}) {
      parameters.push_back(zeros({5, 7}, {.dtype = dtype, .device = device}).set_requires_grad());
      parameters.back().set_grad(ops::to_device(ops::cast(normal({5, 7}, parameters.size()), dtype), device));
    }
    nn::StateDict result{{"norm", optim::clip_grad_norm_(parameters, {.max_norm = 1})}};
    optim::clip_grad_value_(parameters, {.clip_value = 0.1});
    for (const Tensor& parameter : parameters) result[std::to_string(result.size())] = parameter.grad();
    return result;
  };
  const nn::StateDict wanted = clipped(Device());
  const Device other(DeviceType::cuda);
  check_agrees(clipped(other), wanted, float32_tolerance);
}

TEST_CASE("device: a state saved on one device is loaded on the other", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const pleat_test::TemporaryDirectory directory;
  manual_seed(1);
  nn::Sequential here = small_network();
  step(here, image());  // running statistics of their own
  const Device other(DeviceType::cuda);
  nn::Sequential there = small_network();
  there.to(other);
  const auto check_same_state = [](const nn::Module& a, const nn::Module& b) {
    for (const auto& [name, tensor] : a.state_dict()) {
      CAPTURE(name);
      CHECK(b.state_dict().at(name).to_vector<double>() == tensor.to_vector<double>());
    }
  };
  there.load_state_dict(here.state_dict());
  check_same_state(here, there);
  for (const Tensor& parameter : there.parameters()) CHECK(parameter.device() == other);

  step(there, ops::to_device(image(), other));
  io::write_safetensors(directory / "there.safetensors", there.state_dict());
  here.load_state_dict(io::read_safetensors(directory / "there.safetensors").tensors);
  check_same_state(there, here);
  for (const Tensor& parameter : here.parameters()) CHECK(parameter.device().is_cpu());
}
TEST_CASE("device: an optimiser's state goes on with on the other device", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  // Three steps here and two there are five steps anywhere.
  const auto parameter = [](Device device) {
    return ops::to_device(normal({6, 5}), device).set_requires_grad();
  };
  const auto steps = [](optim::Optimizer& optimizer, const Tensor& x, int n) {
    for (int i = 0; i < n; ++i) {
      optimizer.zero_grad();
      sum(x * x * x).backward();
      optimizer.step();
    }
  };
  const optim::AdamOptions options{.lr = 0.05};
  const Tensor all = parameter(Device());
  optim::Adam five({all}, options);
  steps(five, all, 5);
  const Tensor first = parameter(Device());
  optim::Adam three({first}, options);
  steps(three, first, 3);

  const Device other(DeviceType::cuda);
  const Tensor second = ops::to_device(ops::copy(first.detach()), other).set_requires_grad();
  optim::Adam two({second}, options);
  two.load_state_dict(three.state_dict());
  steps(two, second, 2);
  CHECK(relative_error(second, all) < 1e-12);
}

TEST_CASE("device: random numbers have the same bits", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const auto draw = [](Device device) {
    Generator g(11);
    std::vector<std::vector<double>> all;
    const auto keep = [&](const Tensor& x) {
      CHECK(x.device() == device);
      all.push_back(x.to_vector<double>());
    };
    for (const DType dtype : {float64, float32, float16, bfloat16}) {
      keep(rand({1001}, {.dtype = dtype, .device = device}, g));
      keep(randn({1001}, {.dtype = dtype, .device = device}, g));
      const Tensor x = empty({7, 5}, {.dtype = dtype, .device = device});
      fill_uniform_(x, -2, 3, g);
      keep(x);
      fill_normal_(x, 1, 0.5, g);
      keep(x);
    }
    keep(randint(-5, 1000, {1001}, device, g));
    keep(randperm(1001, device, g));
    keep(bernoulli(0.3, {1001}, device, g));
    keep(dropout(ops::to_format(ones({4, 5, 3, 3}, {.device = device}), MemoryFormat::channels_last), 0.3,
                 true, g));
    return all;
  };
  const auto wanted = draw(Device());
  const Device other(DeviceType::cuda);
  CHECK(draw(other) == wanted);
}

TEST_CASE("device: creation", "[device]") {
  agrees_in_value({normal({3, 4})}, [](const Tensors& t) {
    const TensorOptions as{.dtype = t[0].dtype(), .device = t[0].device()};
    return Tensors{zeros({2, 3}, as),
                   ones({2, 3}, as),
                   full({2, 3}, 2.5, as),
                   zeros_like(t[0]),
                   ones_like(t[0]),
                   full_like(t[0], 7),
                   arange(-3, 4, 0.5, {.dtype = as.dtype, .device = as.device}),
                   linspace(-1, 2, 10, as),
                   eye(4, as),
                   eye(2, 5, as),
                   ops::copy(t[0]),
                   ops::number_like(3, t[0])};
  });
}
