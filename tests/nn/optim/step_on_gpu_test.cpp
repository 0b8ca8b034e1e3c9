#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

using test::Params;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Params&)>;

/// Numbers of few bits, each unlike its neighbours: multiples of `unit`, none 0.
void fill_dyadic(const Tensor& x, double unit, int64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(x.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int64_t k = static_cast<int64_t>(i) * 7 + seed * 5;
    values[i] = static_cast<float>(static_cast<double>(k % 13 + 1) * (k % 3 == 0 ? -unit : unit));
  }
  ops::copy_into(x, from_vector(values, x.shape()));
}

/// A parameter of each kind, and how its gradient lies.
struct Kind {
  Tensor param;
  std::function<Tensor()> new_grad;
};
std::vector<Kind> kinds() {
  const auto alike = [](const Tensor& param) { return Kind{param, [param] { return empty_like(param); }}; };
  const Tensor transposed = empty({12, 7}).as_strided({7, 12}, {1, 7}, 0);
  const Tensor filter = empty({4, 3, 3, 3});
  const Tensor gaps = empty({40}).as_strided({5, 4}, {8, 2}, 1);
  std::vector<Kind> all = {
      alike(empty({1009})),
      {transposed,
       [] {
         return empty({7, 12});
       }},
      {filter,
       [] {
         return empty({4, 3, 3, 3}, {.format = MemoryFormat::channels_last});
       }},
      {gaps,
       [] {
         return empty({5, 4});
       }},
      alike(empty({38}).as_strided({37}, {1}, 1)),  // no whole vectors
      alike(empty({21}, {.dtype = bfloat16})),
      alike(empty({5, 8}, {.dtype = float16})),
      alike(empty({10}, {.dtype = float64})),
      alike(empty({0, 3})),
      alike(empty({})),
  };
  int64_t seed = 0;
  for (const Kind& kind : all) {
    fill_dyadic(kind.param, 0.125, ++seed);
    kind.param.set_requires_grad();
  }
  return all;
}

Params params_of(const std::vector<Kind>& all) {
  Params params;
  for (const Kind& kind : all) params.push_back(kind.param);
  return params;
}

void set_grads(const std::vector<Kind>& all, int64_t step) {
  int64_t seed = 100 * step;
  for (const Kind& kind : all) {
    const Tensor grad = kind.new_grad();
    fill_dyadic(grad, 0.25, ++seed);
    kind.param.set_grad(grad);
  }
}

/// All numbers after three steps: parameters, then states.
std::vector<std::vector<double>> numbers_after_steps(const MakeOptimizer& make) {
  const std::vector<Kind> all = kinds();
  const auto optimizer = make(params_of(all));
  for (int64_t step = 0; step < 3; ++step) {
    set_grads(all, step);
    if (step == 1) all[0].param.set_grad({});  // its later updates are not numbered like the others'
    optimizer->step();
  }
  std::vector<std::vector<double>> numbers;
  for (const Kind& kind : all) numbers.push_back(kind.param.to_vector<double>());
  for (const auto& [key, state] : optimizer->state_dict()) numbers.push_back(state.to_vector<double>());
  return numbers;
}

}  // namespace

TEST_CASE("a step on a GPU gives the bits of one on the CPU, for parameters of all kinds",
          "[optim][device]") {
  if (pleat_test::lacks_gpus()) return;
  const std::vector<std::vector<double>> untrained = [] {
    std::vector<std::vector<double>> numbers;
    for (const Kind& kind : kinds()) numbers.push_back(kind.param.to_vector<double>());
    return numbers;
  }();
  for (const test::OptimizerCase& c : test::optimizer_cases()) {
    if (!c.formula) continue;  // Muon takes matrices only, whose products are not rounded alike
    CAPTURE(c.name);
    const auto after = [&c] {
      return numbers_after_steps(
          [&c](const Params& params) { return c.make(params, {.lr = 0.5, .eps = 0}); });
    };
    const auto on_cpu = pleat_test::on_device("cpu", after);
    const auto on_gpu = pleat_test::on_device("cuda", after);
    REQUIRE(on_gpu.size() == on_cpu.size());
    for (std::size_t i = 0; i < on_gpu.size(); ++i) {
      CAPTURE(i);
      CHECK((on_gpu[i] == on_cpu[i]));
      if (i < untrained.size() && !untrained[i].empty()) CHECK((on_gpu[i] != untrained[i]));
    }
  }
}

TEST_CASE("memory between the elements of a parameter stays as it is") {
  const Tensor memory = ones({21});
  const Tensor param = memory.as_strided({3, 2}, {6, 2}, 1).set_requires_grad();
  param.set_grad(ones({3, 2}));
  optim::SGD sgd{{param}, {.lr = 0.5}};
  sgd.step();
  std::vector<float> wanted(21, 1.0F);
  for (const std::size_t i : {1, 3, 7, 9, 13, 15}) wanted[i] = 0.5F;
  CHECK(memory.to_vector() == wanted);
}

TEST_CASE("clipping on a GPU gives the bits of clipping on the CPU", "[optim][device]") {
  if (pleat_test::lacks_gpus()) return;
  const auto clipped = [](bool by_norm) {
    const std::vector<Kind> all = kinds();
    set_grads(all, 1);
    // Sums of these squares are exact in any order.
    if (by_norm)
      CHECK(optim::clip_grad_norm_(params_of(all), {.max_norm = 2}).item() > 2);
    else
      optim::clip_grad_value_(params_of(all), {.clip_value = 1.125});
    std::vector<std::vector<double>> numbers;
    for (const Kind& kind : all) numbers.push_back(kind.param.grad().to_vector<double>());
    return numbers;
  };
  for (const bool by_norm : {false, true}) {
    const auto run = [&] { return clipped(by_norm); };
    CHECK((pleat_test::on_device("cuda", run) == pleat_test::on_device("cpu", run)));
  }
}

TEST_CASE("a gradient that several parameters have is clipped once") {
  const Tensor a = zeros({2}).set_requires_grad();
  const Tensor b = zeros({2}).set_requires_grad();
  const Tensor grad = tensor({3.0, 4.0});
  a.set_grad(grad);
  b.set_grad(grad);
  CHECK(optim::clip_grad_norm_({a, b, a}, {.max_norm = 2.5}).item() == Approx(5));
  CHECK(a.grad().to_vector()[1] == Approx(2));
  CHECK(b.grad().to_vector()[1] == Approx(2));
}

TEST_CASE("cuda: optimisers do on a GPU what they do on the CPU", "[optim][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  for (const test::OptimizerCase& c : test::optimizer_cases()) {
    if (!c.formula) continue;
    CAPTURE(c.name);
    const std::vector<Kind> on_cpu = kinds();
    Params on_gpu;
    for (const Kind& kind : on_cpu) on_gpu.push_back(kind.param.detach().to("cuda").set_requires_grad());
    const auto one = c.make(params_of(on_cpu), {.lr = 0.5, .eps = 0});
    const auto other = c.make(on_gpu, {.lr = 0.5, .eps = 0});
    for (int64_t step = 0; step < 3; ++step) {
      set_grads(on_cpu, step);
      for (std::size_t i = 0; i < on_gpu.size(); ++i) on_gpu[i].set_grad(on_cpu[i].param.grad().to("cuda"));
      optim::clip_grad_value_(params_of(on_cpu), {.clip_value = 2});
      optim::clip_grad_value_(on_gpu, {.clip_value = 2});
      one->step();
      other->step();
    }
    for (std::size_t i = 0; i < on_gpu.size(); ++i) {
      CAPTURE(i);
      if (on_gpu[i].numel() > 0)
        CHECK(test::relative_error(on_gpu[i].to(Device()), on_cpu[i].param) <
              (is_half(on_gpu[i].dtype()) ? 1e-2 : 1e-6));
    }
    other->zero_grad();
    CHECK_FALSE(on_gpu[0].grad().defined());
  }
}

TEST_CASE("cuda: gradients add up on a GPU until they are forgotten", "[optim][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor p = full({1000}, 2.0, {.device = "cuda"}).set_requires_grad();
  optim::SGD sgd{{p}, {.lr = 0.25}};
  for (int i = 0; i < 2; ++i) sum(p * p).backward();
  CHECK(p.grad().to_vector()[999] == 8);
  sgd.step();
  CHECK(p.to_vector()[999] == 0);
  sgd.zero_grad();
  sum(p + p).backward();
  CHECK(p.grad().to_vector()[0] == 2);
}
