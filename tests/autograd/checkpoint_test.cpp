#include "pleat/autograd/checkpoint.h"

#include <functional>
#include <memory>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/module.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// A function with a memory, which it keeps in `kept`, and a weight.
struct Remembering {
  const char* name;
  Tensor (*function)(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept);
  std::vector<Tensor> (*memory)();
};

/// A mean of means over time, by which the values are divided.
Tensor by_average(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept) {
  lerp_(kept[0], mean(abs(x.detach()), 0), 0.25);
  return x * weight / kept[0].clone();
}

/// A weight divided by its largest singular value, which a step of power iteration improves (Miyato et al.,
/// "Spectral Normalization for GANs", 2018).
Tensor spectral(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept) {
  const Tensor matrix = reshape(weight, {2, 2});
  Tensor u = narrow(kept[0], 0, 0, 2), v = narrow(kept[0], 0, 2, 2);
  {
    const NoGrad guard;
    copy_(v, matmul(transpose(matrix, 0, 1), u));
    divide_(v, norm(v, {}));
    copy_(u, matmul(matrix, v));
    divide_(u, norm(u, {}));
  }
  const Tensor sigma = matmul(u.clone(), matmul(matrix, v.clone()));
  return reshape(matmul(reshape(x, {-1, 2}), matrix / sigma), x.shape());
}

/// Counts its calls, and scales by them.
Tensor counting(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept) {
  kept[0][1] += 1;
  return x * weight * kept[0][1].to(float64);
}

/// Rows that are written one after another.
Tensor queue(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept) {
  const int64_t at = kept[1].item<int64_t>();
  kept[0][at] = mean(x.detach(), 0);
  fill_(kept[1], at + 1);
  return x * weight + sum(kept[0].clone(), 0);
}

Tensor scattered(const Tensor& x, const Tensor& weight, const std::vector<Tensor>& kept) {
  index_add_(kept[0], 0, tensor({3, 1, 1}), ones({3}, float64));
  return x * weight * (kept[0] + 1);
}

/// A weight that is kept within bounds.
Tensor bounded(const Tensor& x, const Tensor& weight, const std::vector<Tensor>&) {
  {
    const NoGrad guard;
    clamp_(weight, {.min = -0.5, .max = 0.5});
    weight *= 0.875;
  }
  return x * weight * weight;
}

const std::vector<Remembering>& remembering() {
  using Tensors = std::vector<Tensor>;
  static const std::vector<Remembering> all{
      {"average", by_average, [] { return Tensors{ones({4}, float64)}; }},
      {"spectral norm", spectral, [] { return Tensors{full({4}, 0.5, float64)}; }},
      {"counter", counting, [] { return Tensors{zeros({3}, int64)}; }},
      {"queue", queue,
       [] {
         return Tensors{zeros({8, 4}, float64), zeros({}, int64)};
       }},
      {"index_add_", scattered, [] { return Tensors{zeros({4}, float64)}; }},
      {"bounds", bounded, [] { return Tensors(); }}};
  return all;
}

std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }

/// Losses and gradients of some steps, and what the function remembers then.
std::vector<std::vector<double>> trained(const Remembering& one, bool checkpointed, bool twice) {
  Generator random(3);
  const Tensor weight = randn({4}, float64, random).set_requires_grad();
  const std::vector<Tensor> kept = one.memory();
  std::vector<std::vector<double>> seen;
  for (int step = 0; step < 3; ++step) {
    const Tensor leaf = randn({6, 4}, float64, random).set_requires_grad();
    const auto f = [&](const Tensor& x) { return one.function(x, weight, kept); };
    Tensor y = checkpointed ? checkpoint(f, leaf * 2) : f(leaf * 2);
    if (twice) y = checkpointed ? checkpoint(f, y) : f(y);
    const Tensor loss = sum(y * y);
    loss.backward();
    for (const Tensor& t : {loss, leaf.grad(), weight.grad(), weight}) seen.push_back(numbers(t));
    for (const Tensor& t : kept) seen.push_back(numbers(t));
  }
  return seen;
}

}  // namespace

TEST_CASE("a checkpoint gives the same gradients, of inputs and of parameters", "[autograd]") {
  const Tensor x = randn({3, 4}, {.dtype = float64});
  const Tensor w = randn({3, 4}, {.dtype = float64});
  const auto gradients = [&](bool checkpointed) {
    const Tensor input = x.clone().set_requires_grad();
    const Tensor weight = w.clone().set_requires_grad();
    const auto block = [&](const Tensor& t) { return t * weight * t; };
    const Tensor inner = input * 2;
    const Tensor y = checkpointed ? checkpoint(block, inner) : block(inner);
    sum(y * y).backward();
    return std::pair(input.grad().to_vector<double>(), weight.grad().to_vector<double>());
  };
  CHECK(gradients(true) == gradients(false));
}

TEST_CASE("a checkpoint runs its function again with the same random numbers", "[autograd]") {
  int runs = 0;
  std::vector<std::vector<float>> drawn;
  const auto noisy = [&](const Tensor& t) {
    ++runs;
    const Tensor noise = rand({5});
    drawn.push_back(noise.to_vector());
    return t * noise;
  };
  const Tensor x = ones({5}).set_requires_grad();
  const Tensor y = checkpoint(noisy, x);
  const auto after = rand({5}).to_vector();
  CHECK(runs == 1);
  sum(y).backward();
  CHECK(runs == 2);
  CHECK(drawn[0] == drawn[1]);
  CHECK(rand({5}).to_vector() != after);
  CHECK(x.grad().to_vector() == drawn[0]);
}

TEST_CASE("a checkpoint reaches parameters when its input wants no gradient", "[autograd]") {
  const Tensor w = ones({2}).set_requires_grad();
  const Tensor y = checkpoint([&](const Tensor& t) { return t * w; }, ones({2}));
  sum(y).backward();
  CHECK(w.grad().to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("a checkpoint passes gradcheck and gradgradcheck", "[autograd]") {
  const auto f = [](const std::vector<Tensor>& in) {
    return checkpoint([](const std::vector<Tensor>& t) { return t[0] * t[1] * t[0]; }, in);
  };
  const std::vector<Tensor> inputs = {randn({2, 3}, {.dtype = float64}), randn({3}, {.dtype = float64})};
  CHECK(gradcheck(f, inputs));
  CHECK(gradgradcheck(f, inputs));
}

TEST_CASE("a checkpoint changes what its function remembers once, and computes the same twice",
          "[autograd]") {
  for (const Remembering& one : remembering())
    for (const bool twice : {false, true}) {
      if (twice && std::string(one.name) == "bounds") continue;  // backward would need the weight of before
      CAPTURE(one.name, twice);
      CHECK(trained(one, true, twice) == trained(one, false, twice));
    }
}

TEST_CASE("a checkpoint around norms moves their running statistics once", "[autograd]") {
  const auto run = [](bool checkpointed, auto&& norm) {
    manual_seed(5);
    norm.train();
    const Tensor x = randn({4, 3, 5, 2}).set_requires_grad();
    const auto f = [&](const Tensor& t) { return tanh(norm(t)); };
    for (int step = 0; step < 3; ++step) {
      const Tensor y = checkpointed ? checkpoint(f, x * (step + 1)) : f(x * (step + 1));
      sum(y * y * y).backward();
    }
    CHECK(norm.num_batches_tracked.template item<int64_t>() == 3);
    return std::vector<std::vector<double>>{numbers(x.grad()), numbers(norm.weight.grad()),
                                            numbers(norm.running_mean), numbers(norm.running_var)};
  };
  for (const std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    const auto batch = [&] { return nn::BatchNorm2d{{.num_features = 3, .momentum = momentum}}; };
    CHECK(run(true, batch()) == run(false, batch()));
  }
  const auto instance = [] {
    return nn::InstanceNorm2d{{.num_features = 3, .affine = true, .track_running_stats = true}};
  };
  CHECK(run(true, instance()) == run(false, instance()));
}

TEST_CASE("a checkpoint draws the same again from any generator", "[autograd]") {
  Generator own(7);
  for (const bool inner : {false, true}) {
    const auto f = [&](const Tensor& x) {
      Generator local(9);
      const Tensor y = dropout(x, 0.5, true, own) * rand({6}, float32, own) + dropout(x, 0.25);
      return y * rand({6}, float32, local);
    };
    const auto g = [&](const Tensor& x) { return inner ? checkpoint(f, f(x)) : f(x); };
    const auto run = [&](bool checkpointed) {
      own = Generator(7);
      manual_seed(2);
      const Tensor x = ones({6}).set_requires_grad();
      sum(checkpointed ? checkpoint(g, x) : g(x)).backward();
      return std::vector<std::vector<double>>{numbers(x.grad()), numbers(rand({2}, float32, own)),
                                              numbers(rand({2}))};
    };
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("a retained checkpoint can be run again and again", "[autograd]") {
  const std::vector<Tensor> kept{ones({4}, float64)};
  const Tensor weight = full({4}, 0.5, float64).set_requires_grad();
  const Tensor y =
      checkpoint([&](const Tensor& x) { return by_average(x, weight, kept); }, ones({2, 4}, float64));
  sum(y).backward({.retain_graph = true});
  const Tensor once = weight.grad().clone();
  sum(y).backward();
  CHECK(numbers(weight.grad()) == numbers(once * 2));
  CHECK(numbers(kept[0]) == std::vector<double>(4, 1));
}

TEST_CASE("a checkpoint's function may change its input in place where that needs no gradient",
          "[autograd]") {
  const Tensor w = ones({2}).set_requires_grad();
  const auto f = [&](const Tensor& x) {
    x += 1;
    return x * w;
  };
  const Tensor data = zeros({2});
  sum(checkpoint(f, data)).backward();
  CHECK(w.grad().to_vector() == std::vector<float>{1, 1});
  CHECK(data.to_vector() == std::vector<float>{1, 1});
  // Else the tape would not know of it: y + h would take h's gradient for that of h before.
  for (const bool as_input : {true, false}) {
    const Tensor h = w * 2;
    CHECK_THROWS_WITH(checkpoint([&](const Tensor& x) { return relu_(as_input ? x : h) * w; }, h),
                      Contains("changes a tensor " + h.describe() + " in place that is not its own"));
    CHECK(h.to_vector() == std::vector<float>{2, 2});
  }
  CHECK_THROWS_AS(checkpoint(f, w), AutogradError);
}

TEST_CASE("a checkpoint's function that computes something else the second time is refused", "[autograd]") {
  int64_t calls = 0;
  const Tensor x = ones({4}).set_requires_grad();
  const Tensor y = checkpoint([&](const Tensor& t) { return narrow(t, 0, 0, ++calls); }, x);
  CHECK_THROWS_WITH(y.backward(ones({1})),
                    Contains("checkpoint: the function gave [1] float32 first, and [2]"));
}

TEST_CASE("what a checkpoint's function throws leaves its memory as it was", "[autograd]") {
  bool fails = false;
  const Tensor x = ones({2}).set_requires_grad(), counter = zeros({});
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        counter += 1;
        if (fails) throw ValueError("as told");
        return t * counter;
      },
      x);
  fails = true;
  CHECK_THROWS_AS(sum(y).backward(), ValueError);
  CHECK(counter.item() == 1);
}

TEST_CASE("grad reaches what a checkpoint's function uses, and accumulates nothing", "[autograd]") {
  const Tensor x = full({2}, 3.0).set_requires_grad(), w = full({2}, 2.0).set_requires_grad();
  const auto y = [&] { return sum(checkpoint([&](const Tensor& t) { return t * t * w; }, x)); };
  for (const bool create_graph : {false, true}) {
    CHECK(grad({y()}, {w}, {}, {.create_graph = create_graph})[0].to_vector() == std::vector<float>{9, 9});
    CHECK(grad({y()}, {x}, {}, {.create_graph = create_graph})[0].to_vector() == std::vector<float>{12, 12});
    CHECK_FALSE(w.grad().defined());
    CHECK_FALSE(x.grad().defined());
  }
  y().backward({.create_graph = true});
  CHECK(w.grad().to_vector() == std::vector<float>{9, 9});
  CHECK(grad({sum(w.grad())}, {x})[0].to_vector() == std::vector<float>{6, 6});
}

TEST_CASE("checkpoints may use what was computed outside of them", "[autograd]") {
  const auto run = [](bool checkpointed) {
    const Tensor w = full({2}, 2.0).set_requires_grad();
    const Tensor h = exp(w);
    const auto f = [&](const Tensor& x) { return x * h; };
    Tensor y = w * 1;
    for (int i = 0; i < 2; ++i) y = checkpointed ? checkpoint(f, y) : f(y);
    sum(y * h).backward();
    return w.grad().to_vector();
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("a checkpoint runs again under the scopes of its call", "[autograd]") {
  const Tensor x = full({2, 2}, 1.0 / 3).set_requires_grad();
  std::vector<DType> types;
  const auto f = [&](const Tensor& t) {
    const Tensor y = matmul(t, t);
    types.push_back(y.dtype());
    return y;
  };
  const Tensor y = [&] {
    const Autocast guard{bfloat16};
    return checkpoint(f, x);
  }();
  sum(y).backward();
  CHECK(types == std::vector<DType>{bfloat16, bfloat16});
}

namespace {

/// Remembers a mean in its buffer, by its elements or by another tensor.
struct Averaging : nn::Module {
  Tensor average = zeros({2});
  bool in_place = false;
  Tensor forward(const Tensor& x) override {
    const Tensor now = (average * 0.5 + x * 0.5).detach();
    if (in_place)
      copy_(average, now);
    else
      average = now;
    return x * average.clone();
  }
  void members(nn::Members& m) override { m.buffer("average", average); }
};

}  // namespace

TEST_CASE("a checkpoint refuses a module that makes its buffer another tensor", "[autograd]") {
  Averaging net;
  const Tensor x = ones({2}).set_requires_grad();
  const auto f = [&](const Tensor& t) { return net(t); };
  CHECK_THROWS_WITH(checkpoint(f, x),
                    Contains("the forward of Averaging makes its buffer \"average\" another"));
  CHECK(net.average.to_vector() == std::vector<float>{0, 0});
  net.in_place = true;
  sum(checkpoint(f, x)).backward();
  CHECK(net.average.to_vector() == std::vector<float>{0.5, 0.5});
  CHECK(x.grad().to_vector() == std::vector<float>{0.5, 0.5});
}
