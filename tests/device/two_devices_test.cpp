// Two GPUs in one program: the second works while the first is the thread's current one. What each function
// computes there is in the other files of this folder (agrees).

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pleat/autograd/copy.h"
#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/data/dataset.h"
#include "pleat/data/loader.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::lacks_gpus;

namespace {

const Device first(DeviceType::cuda, 0), second(DeviceType::cuda, 1);

/// Views of many kinds of a tensor [4, 6, 5].
std::vector<Tensor> views(const Tensor& x) {
  return {x,
          ops::to_format(x, MemoryFormat::contiguous),
          transpose(x, 0, 2),
          slice(x, 1, 1, 6, 2),
          select(x, 0, 2),
          select(x, 2, 3),
          expand(select(x, 1, 0), {3, 4, 5}),
          slice(x, 0, 2, 2)};
}

std::string with(std::string words, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = words.find(from, at)) != std::string::npos; at += to.size())
    words.replace(at, from.size(), to);
  return words;
}

/// The words of the error that `f` ends with; empty when it ends well.
std::string words_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cuda: tensors go from GPU to GPU, in any layout and type", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  for (const DType dtype : {float32, float64, float16, bfloat16, int64, int32, uint8, boolean}) {
    CAPTURE(name(dtype));
    const Tensor host = arange(0, 120, 1, {.dtype = int64}).to(dtype).as_strided({4, 6, 5}, {30, 5, 1}, 0);
    for (const auto& [from, to] : {std::pair{first, second}, {second, first}}) {
      const std::vector<Tensor> wanted = views(host);
      const std::vector<Tensor> there = views(ops::to_device(host, from));
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(i);
        const Tensor moved = there[i].to(to);
        CHECK(moved.device() == to);
        CHECK(moved.to_vector<double>() == wanted[i].to_vector<double>());
        CHECK(there[i].to_vector<double>() == wanted[i].to_vector<double>());
        // Into what has gaps itself, of another type, too.
        const Tensor wide = zeros({4, 6, 5, 2}, {.dtype = float32, .device = to});
        if (i == 0) {
          const Tensor part = select(wide, 3, 1);
          ops::copy_into(part, there[0]);
          CHECK(part.to_vector<double>() == host.to(float32).to_vector<double>());
          CHECK(sum(select(wide, 3, 0)).item() == 0);
        }
      }
      CHECK(cuda::current_device() == first);
    }
  }
}

TEST_CASE("cuda: tensors on two GPUs are refused in the words for CPU and GPU", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const auto square = [](Device device) { return ones({4, 4}, {.device = device}); };
  const auto image = [](Device device) { return ones({2, 4, 5, 5}, {.device = device}); };
  const auto channel = [](Device device) { return ones({4}, {.device = device}); };
  const auto numbers = [](Device device) { return zeros({4}, {.dtype = int64, .device = device}); };
  const auto grid = [](Device device) { return zeros({4, 4}, {.dtype = int64, .device = device}); };
  const auto mask = [](Device device) { return ones({4, 4}, {.dtype = boolean, .device = device}); };
  using Call = std::function<void(Device, Device)>;
  const std::vector<std::pair<std::string, Call>> calls = {
      {"add", [&](Device a, Device b) { square(a) + square(b); }},
      {"add_", [&](Device a, Device b) { add_(square(a), square(b)); }},
      {"equal", [&](Device a, Device b) { square(a) == square(b); }},
      {"where", [&](Device a, Device b) { where(mask(a), square(b), square(b)); }},
      {"where", [&](Device a, Device b) { where(mask(a), square(a), square(b)); }},
      {"masked_fill", [&](Device a, Device b) { masked_fill(square(a), mask(b), 1); }},
      {"matmul", [&](Device a, Device b) { matmul(square(a), square(b)); }},
      {"linear", [&](Device a, Device b) { linear(square(a), square(b)); }},
      {"linear", [&](Device a, Device b) { linear(square(a), square(a), channel(b)); }},
      {"addmm", [&](Device a, Device b) { addmm(square(b), square(a), square(a)); }},
      {"einsum",
       [&](Device a, Device b) {
         einsum("ij,jk->ik", {square(a), square(b)});
       }},
      {"conv2d", [&](Device a, Device b) { conv2d(image(a), image(b)); }},
      {"conv2d", [&](Device a, Device b) { conv2d(image(a), image(a), ones({2}, {.device = b})); }},
      {"conv_transpose2d",
       [&](Device a, Device b) {
         conv_transpose2d(image(a), ones({4, 2, 3, 3}, {.device = b}));
       }},
      {"batch_norm",
       [&](Device a, Device b) { batch_norm(image(a), channel(b), channel(b), {}, {}, {.training = true}); }},
      {"group_norm",
       [&](Device a, Device b) { group_norm(image(a), channel(b), channel(b), {.num_groups = 2}); }},
      {"layer_norm",
       [&](Device a, Device b) { layer_norm(square(a), channel(b), channel(b), {.normalized_shape = {4}}); }},
      {"cat",
       [&](Device a, Device b) {
         cat({square(a), square(b)});
       }},
      {"stack",
       [&](Device a, Device b) {
         stack({square(a), square(b)});
       }},
      {"gather", [&](Device a, Device b) { gather(square(a), 0, grid(b)); }},
      {"scatter", [&](Device a, Device b) { scatter(square(a), 0, grid(b), square(a)); }},
      {"scatter", [&](Device a, Device b) { scatter(square(a), 0, grid(a), square(b)); }},
      {"scatter_add", [&](Device a, Device b) { scatter_add(square(a), 0, grid(a), square(b)); }},
      {"index_select", [&](Device a, Device b) { index_select(square(a), 0, numbers(b)); }},
      {"index_add", [&](Device a, Device b) { index_add(square(a), 0, numbers(a), square(b)); }},
      {"index_copy", [&](Device a, Device b) { index_copy(square(a), 0, numbers(a), square(b)); }},
      {"index_put", [&](Device a, Device b) { index_put(square(a), {numbers(b)}, square(a)); }},
      {"index_put", [&](Device a, Device b) { index_put(square(a), {numbers(a)}, square(b)); }},
      {"index_put",
       [&](Device a, Device b) {
         index_put(square(a), {numbers(a), numbers(b)}, channel(a));
       }},
      {"masked_select", [&](Device a, Device b) { masked_select(square(a), mask(b)); }},
      {"embedding", [&](Device a, Device b) { embedding(numbers(a), square(b)); }},
      {"linear_scan", [&](Device a, Device b) { linear_scan(square(a), square(b), 0); }},
      {"cross_entropy", [&](Device a, Device b) { cross_entropy(square(a), numbers(b)); }},
      {"cross_entropy", [&](Device a, Device b) { cross_entropy(square(a), square(b)); }},
      {"cross_entropy",
       [&](Device a, Device b) { cross_entropy(square(a), numbers(a), {.weight = channel(b)}); }},
      {"nll_loss", [&](Device a, Device b) { nll_loss(square(a), numbers(b)); }},
      {"mse_loss", [&](Device a, Device b) { mse_loss(square(a), square(b)); }},
      {"bce_with_logits", [&](Device a, Device b) { bce_with_logits(square(a), square(b)); }},
      {"kl_div", [&](Device a, Device b) { kl_div(square(a), square(b)); }},
      {"set_grad", [&](Device a, Device b) { square(a).set_requires_grad().set_grad(square(b)); }},
      {"backward", [&](Device a, Device b) { (square(a).set_requires_grad() * 2).backward(square(b)); }},
  };
  for (const auto& named : calls) {
    const std::string& op = named.first;
    const Call& call = named.second;
    CAPTURE(op);
    for (const bool swapped : {false, true}) {
      const auto words = [&](Device a, Device b) {
        const std::string said = words_of([&] { swapped ? call(b, a) : call(a, b); });
        return with(with(said, name(a), "[one]"), name(b), "[other]");
      };
      const std::string wanted = words(Device(), first);
      CHECK_FALSE(wanted.empty());
      CHECK(wanted.find("[o") != std::string::npos);
      CHECK(words(first, second) == wanted);
      CHECK(cuda::current_device() == first);
    }
  }
}

namespace {

/// The numbers of some training steps of a network.
std::vector<std::vector<double>> trained(Device device) {
  manual_seed(4);
  nn::Sequential net{nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3, .bias = false}},
                     nn::BatchNorm2d{{.num_features = 4}},
                     nn::ReLU{},
                     nn::MaxPool2d{{.kernel_size = 2}},
                     nn::Flatten{},
                     nn::Dropout{{.p = 0.3}},
                     nn::Linear{{.in_features = 16, .out_features = 5}}};
  net.to(device);
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  std::vector<std::vector<double>> bits;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({4, 3, 6, 6}, {.device = device});
    const Tensor loss = cross_entropy(net(x), tensor({0, 1, 4, 2}).to(device));
    sgd.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 1});
    sgd.step();
    bits.push_back({loss.item()});
  }
  for (const Tensor& p : net.parameters()) bits.push_back(p.to_vector<double>());
  for (const auto& [name, buffer] : net.named_buffers()) bits.push_back(buffer.to_vector<double>());
  return bits;
}

}  // namespace

TEST_CASE("cuda: a module trains on the second GPU as on the first", "[nn][cuda]") {
  if (lacks_gpus(2)) return;
  const auto wanted = trained(first);
  const int64_t before = allocator_statistics(first).requests;
  CHECK(trained(second) == wanted);
  // Nothing of it was on the first.
  CHECK(allocator_statistics(first).requests == before);
  CHECK(cuda::current_device() == first);
  // Nor does it matter which one is current, or which thread computes.
  const cuda::DeviceGuard guard(second);
  CHECK(trained(first) == wanted);
  std::thread([&] { CHECK(trained(second) == wanted); }).join();
  CHECK(cuda::current_device() == second);
}

TEST_CASE("cuda: a model may lie on two GPUs, with one optimiser", "[nn][cuda]") {
  if (lacks_gpus(2)) return;
  for (const test::OptimizerCase& c : test::optimizer_cases()) {
    CAPTURE(c.name);
    const auto run = [&](Device a, Device b) {
      manual_seed(6);
      nn::Linear front{{.in_features = 4, .out_features = 6, .bias = false}};
      nn::Linear back{{.in_features = 6, .out_features = 3, .bias = false}};
      front.to(a);
      back.to(b);
      const auto optimizer = c.make({front.weight, back.weight}, {.lr = 0.1});
      optim::GradScaler scaler;
      const Tensor x = randn({5, 4}, {.device = a});
      const Tensor target = tensor({0, 1, 2, 1, 0}).to(b);
      for (int i = 0; i < 3; ++i) {
        const Tensor loss = cross_entropy(back(relu(front(x)).to(b)), target);
        optimizer->zero_grad();
        scaler.scale(loss).backward();
        scaler.unscale_(*optimizer);
        optim::clip_grad_value_(optimizer->parameters(), {.clip_value = 0.5});
        CHECK(scaler.step(*optimizer));
        scaler.update();
      }
      CHECK(front.weight.grad().device() == a);
      CHECK(back.weight.grad().device() == b);
      optim::clip_grad_norm_(optimizer->parameters(), {.max_norm = 1000});
      return std::vector{front.weight.to_vector<double>(), back.weight.to_vector<double>()};
    };
    const auto wanted = run(first, first);
    CHECK(run(second, second) == wanted);
    CHECK(run(first, second) == wanted);
    CHECK(run(second, first) == wanted);
    CHECK(cuda::current_device() == first);
  }
}

TEST_CASE("cuda: what is found on one GPU keeps the parameters of both from their step", "[nn][amp][cuda]") {
  if (lacks_gpus(2)) return;
  const auto parameter = [](Device device) { return ones({3}, {.device = device}).set_requires_grad(); };
  const Tensor a = parameter(first), b = parameter(second), other = parameter(second);
  optim::Adam both{{a, b}, {.lr = 1}};
  optim::SGD alone{{other}, {.lr = 1}};
  optim::GradScaler scaler{{.init_scale = 4}};
  double scale = 4;
  for (const Tensor& bad : {a, b}) {
    for (const Tensor& p : {a, b, other}) p.set_grad(full({3}, 4.0, {.device = p.device()}));
    bad.set_grad(full({3}, std::numeric_limits<double>::infinity(), {.device = bad.device()}));
    const optim::StepMade made = scaler.step(both);
    CHECK(scaler.step(alone));
    scaler.update();
    CHECK_FALSE(made);
    CHECK(scaler.scale() == scale / 2);
    scale /= 2;
  }
  CHECK(a.to_vector()[0] == 1);
  CHECK(b.to_vector()[0] == 1);
  CHECK(both.state_dict().at("param.0.step").item<int64_t>() == 0);
  CHECK(both.state_dict().at("param.1.step").item<int64_t>() == 0);
  CHECK(other.to_vector()[0] == -2);
}

TEST_CASE("cuda: random numbers do not depend on the GPU", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const auto drawn = [](Device device) {
    Generator generator(9);
    return std::vector{randn({33}, {.device = device}, generator).to_vector<double>(),
                       rand({7}, {.device = device}, generator).to_vector<double>(),
                       randint(0, 50, {20}, device, generator).to_vector<double>(),
                       bernoulli(0.5, {40}, device, generator).to_vector<double>()};
  };
  CHECK(drawn(second) == drawn(first));
  // One generator serves both, each draw once.
  Generator one(3), other(3);
  const auto a = randn({8}, {.device = first}, one).to_vector<double>();
  const auto b = randn({8}, {.device = second}, one).to_vector<double>();
  CHECK(a == randn({8}, {.device = second}, other).to_vector<double>());
  CHECK(b == randn({8}, {.device = first}, other).to_vector<double>());
  CHECK(a != b);
}

TEST_CASE("cuda: streams and events know their GPU", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const cuda::Stream here({.device = first}), there({.device = second});
  const cuda::Event of_first({.device = first, .timing = true}),
      of_second({.device = second, .timing = true});
  CHECK(here.device() == first);
  CHECK(there.device() == second);
  CHECK_FALSE(cuda::Stream::default_of(first) == cuda::Stream::default_of(second));
  CHECK_THROWS_WITH(of_first.record(there), "event.record: the event is on cuda:0, the stream on cuda:1");
  CHECK_THROWS_AS(of_second.record(here), DeviceError);
  // A stream may wait for an event of another device.
  Tensor x;
  {
    const cuda::StreamGuard guard(there);
    CHECK(cuda::current_device() == second);
    CHECK(cuda::current_stream(second) == there);
    CHECK(cuda::current_stream(first) == cuda::Stream::default_of(first));
    x = full({1000}, 3.0, {.dtype = float32, .device = second});
    of_second.record();
  }
  CHECK(cuda::current_device() == first);
  CHECK(cuda::current_stream(second) == cuda::Stream::default_of(second));
  here.wait(of_second);
  here.synchronize();
  CHECK(of_second.is_done());
  CHECK(there.is_done());
  CHECK(x.to_vector<double>() == std::vector<double>(1000, 3));
  of_first.record(here);
  CHECK_THROWS_AS(cuda::elapsed_ms(of_first, of_second), DeviceError);
  CHECK(ones({2}, {.device = first}).to_vector() == std::vector<float>{1, 1});
  // A copy from one current stream to the other waits for what is in both.
  {
    const cuda::StreamGuard a(here);
    const cuda::StreamGuard b(there);
    const Tensor y = full({5}, 2.0, {.dtype = float32, .device = first}) + 1;
    const Tensor moved = y.to(second);
    CHECK((moved + 1).to_vector() == std::vector<float>(5, 4));
    CHECK(moved.to(first).to_vector() == std::vector<float>(5, 3));
  }
  cuda::record_stream(x, here);
  x = {};
  CHECK(cuda::current_device() == first);
  for (int i = 0; i < 2; ++i) cuda::synchronize(i == 0 ? first : second);
}

TEST_CASE("cuda: errors and guards leave the current GPU as it was", "[core][cuda]") {
  if (lacks_gpus(2)) return;
  const Tensor x = ones({3, 3}, {.device = second});
  CHECK_THROWS_AS(index_select(x, 0, tensor({7}).to(second)), IndexError);
  CHECK_THROWS_AS(matmul(x, ones({4, 4}, {.device = second})), ShapeError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 40}, {.device = second}), OutOfMemoryError);
  CHECK(cuda::current_device() == first);
  try {
    const cuda::DeviceGuard outer(second);
    const cuda::DeviceGuard inner(first);
    throw ValueError("test");
  } catch (const ValueError&) {
  }
  CHECK(cuda::current_device() == first);
  try {
    const cuda::StreamGuard guard(cuda::Stream({.device = second}));
    throw ValueError("test");
  } catch (const ValueError&) {
  }
  CHECK(cuda::current_device() == first);
  CHECK(cuda::current_stream(second) == cuda::Stream::default_of(second));
  CHECK_THROWS_AS(cuda::DeviceGuard(Device(DeviceType::cuda, 99)), DeviceError);
  CHECK(cuda::current_device() == first);
}

TEST_CASE("cuda: a data loader fills the second GPU", "[data][cuda]") {
  if (lacks_gpus(2)) return;
  const data::TensorDataset host(arange(0, 14, 1, {.dtype = float32}), arange(0, 14));
  const auto epoch = [](const data::TensorDataset& set, Device device, int workers) {
    std::vector<std::vector<double>> seen;
    data::DataLoader loader(set, {.batch_size = 4, .shuffle = true, .workers = workers, .device = device});
    for (const data::Batch& batch : loader) {
      CHECK(batch.inputs.device() == device);
      CHECK(batch.targets.device() == device);
      seen.push_back(batch.inputs.to_vector<double>());
      seen.push_back(batch.targets.to_vector<double>());
    }
    CHECK(cuda::current_device() == first);
    return seen;
  };
  const auto wanted = epoch(host, Device(), 0);
  for (const int workers : {0, 2}) CHECK(epoch(host, second, workers) == wanted);
  CHECK(epoch(host.to(second), second, 1) == wanted);
  CHECK(epoch(host.to(first), second, 1) == wanted);
  CHECK(epoch(host.to(second), first, 1) == wanted);
}
