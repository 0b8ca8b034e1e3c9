#include "pleat/autograd/tape.h"

#include "pleat/autograd/anomaly.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {
Tensor leaf(const Tensor& x) { return x.set_requires_grad(); }
}  // namespace

TEST_CASE("gradients flow to leaves and accumulate") {
  const Tensor x = leaf(tensor({1.0, 2.0, 3.0}));
  const Tensor y = leaf(tensor({4.0, 5.0, 6.0}));
  sum(x * y + x).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{5, 6, 7});
  CHECK(y.grad().to_vector() == std::vector<float>{1, 2, 3});
  sum(x * 2).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{7, 8, 9});
}

TEST_CASE("two leaves never share one gradient") {
  const Tensor x = leaf(ones({2}));
  const Tensor y = leaf(ones({2}));
  sum(x + y).backward();
  add_(x.grad(), ones({2}));
  CHECK(y.grad().to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("broadcasting and promotion are undone") {
  const Tensor x = leaf(ones({2, 3}));
  const Tensor b = leaf(ones({3}, {.dtype = float64}));
  const Tensor y = x + b;
  CHECK(y.dtype() == float64);
  sum(y).backward();
  CHECK(b.grad().to_vector() == std::vector<float>{2, 2, 2});
  CHECK(x.grad().dtype() == float32);
}

TEST_CASE("a chain of 100,000 nodes is walked and destroyed without recursion", "[cpu]") {
  const Tensor x = leaf(scalar(1.0));
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1;
  y.backward();
  CHECK(x.grad().item() == 1);
  Tensor z = x;
  for (int i = 0; i < 100000; ++i) z = z + 1;  // destroyed without a backward
}

TEST_CASE("gradients of gradients") {
  const Tensor x = leaf(scalar(3.0));
  const Tensor y = x * x * x;
  const Tensor dy = grad({y}, {x}, {}, {.create_graph = true})[0];
  CHECK(dy.item() == 27);
  const Tensor ddy = grad({dy}, {x}, {}, {.create_graph = true})[0];
  CHECK(ddy.item() == 18);
  CHECK(grad({ddy}, {x})[0].item() == 6);
}

TEST_CASE("grad reaches inner tensors and reports what is unused") {
  const Tensor x = leaf(scalar(2.0));
  const Tensor y = x * 3;
  const Tensor z = y * y;
  const Tensor other = leaf(scalar(1.0));
  CHECK(grad({z}, {y}, {}, {.retain_graph = true})[0].item() == 12);
  CHECK_THROWS_WITH(grad({z}, {other}, {}, {.retain_graph = true}), Contains("do not depend on input 0"));
  CHECK_FALSE(grad({z}, {other}, {}, {.retain_graph = true, .allow_unused = true})[0].defined());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("misuse of the tape is explained") {
  const Tensor x = leaf(ones({2}));
  const Tensor y = sum(x * x);
  y.backward();
  CHECK_THROWS_WITH(y.backward(), Contains("was released by an earlier backward") &&
                                      Contains("loss.backward({.retain_graph = true})") &&
                                      Contains("state = state.detach()"));
  CHECK_THROWS_WITH((x * x).backward(), Contains("more than one element"));
  CHECK_THROWS_WITH(ones({2}).backward(ones({2})), Contains("does not depend on anything"));
  CHECK_THROWS_WITH(x += 1, Contains("a leaf that requires a gradient cannot be changed in place"));
  CHECK_THROWS_AS(arange(3).set_requires_grad(), DTypeError);
}

TEST_CASE("a saved tensor changed in place is an error that names the op", "[cpu]") {
  const Tensor x = leaf(ones({2}));
  const Tensor w = ones({2});
  const Tensor y = sum(x * w);
  w += 1;
  CHECK_THROWS_WITH(y.backward(),
                    Contains("multiply: backward needs a tensor [2] float32 cpu that was changed"));
}

TEST_CASE("in-place arithmetic is recorded") {
  const Tensor x = leaf(tensor({1.0, 2.0}));
  const Tensor y = x * 1;
  y *= x;
  y += 1;
  sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{2, 4});
}

TEST_CASE("hooks see and replace gradients; retain_grad keeps them") {
  const Tensor x = leaf(ones({2}));
  const Tensor y = x * 3;
  y.retain_grad();
  y.register_hook([](const Tensor& g) { return g * 10; });
  int calls = 0;
  x.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  sum(y).backward();
  CHECK(y.grad().to_vector() == std::vector<float>{10, 10});
  CHECK(x.grad().to_vector() == std::vector<float>{30, 30});
  CHECK(calls == 1);
}

TEST_CASE("nothing is recorded under NoGrad") {
  const Tensor x = leaf(ones({2}));
  const Tensor y = no_grad([&] { return x * 2; });
  CHECK_FALSE(y.requires_grad());
  CHECK((x * 2).requires_grad());
  CHECK_FALSE((x * 2).detach().requires_grad());
}

TEST_CASE("gradients of functions nobody needs are not computed") {
  int calls = 0;
  const Tensor x = leaf(ones({2}));
  const Tensor constant = ones({2});
  const Tensor y =
      record("probe", x.detach().clone(),
             {grad_of(x, [](const Tensor& dy) { return dy; }), grad_of(constant, [&](const Tensor& dy) {
                ++calls;
                return dy;
              })});
  sum(y).backward();
  CHECK(calls == 0);
}

TEST_CASE("anomaly mode names the function that first gave a NaN", "[cpu]") {
  const DetectAnomaly guard;
  const Tensor zero = zeros({2, 2});
  CHECK_THROWS_WITH(zero / zero, Contains("anomaly: divide gave nan in [2, 2] float32 cpu at [0, 0]"));
}

TEST_CASE("gradcheck accepts right and rejects wrong derivatives") {
  const Tensor a = randn({2, 3}, {.dtype = float64});
  const Tensor b = rand({3}, {.dtype = float64}) + 0.5;
  const auto f = [](const std::vector<Tensor>& t) { return t[0] / t[1] * t[0] - t[1]; };
  CHECK(gradcheck(f, {a, b}));
  CHECK(gradgradcheck(f, {a, b}));
  const auto wrong = [](const std::vector<Tensor>& t) {
    return record("wrong", t[0].detach() * 2, {grad_of(t[0], [](const Tensor& dy) { return dy * 3; })});
  };
  CHECK_THROWS_WITH(gradcheck(wrong, {a}), Contains("the tape gives"));
}

TEST_CASE("gradcheck says what NoGrad has kept off the tape") {
  const Tensor a = randn({2, 3}, {.dtype = float64}), b = randn({2, 3}, {.dtype = float64});
  const auto doubled = [](const Tensor& x) {
    const NoGrad guard;
    return record("doubled", x.detach() * 2, {x}, [](const Tensor& dy) -> Grads { return {dy * 2}; });
  };
  const std::string remark =
      "; doubled was called under NoGrad, where record() does nothing: end the scope of the NoGrad before it";
  const auto lost = [&](const std::vector<Tensor>& t) { return doubled(t[0]); };
  const std::string independent = "check: the result does not depend on any floating input on the tape";
  CHECK_THROWS_WITH(gradcheck(lost, {a}), Contains(independent + remark));
  CHECK_THROWS_WITH(gradgradcheck(lost, {a}), Contains(independent + remark));
  const auto half_lost = [&](const std::vector<Tensor>& t) { return doubled(t[0]) + t[1]; };
  CHECK_THROWS_WITH(gradcheck(half_lost, {a, b}),
                    Contains("the tape gives 0, central differences 2") && Contains(remark));
  // Off the tape by other ways there is nothing more to say.
  CHECK_THROWS_WITH(gradcheck([](const std::vector<Tensor>& t) { return t[0].detach(); }, {a}),
                    !Contains("NoGrad") && Contains(independent));
  CHECK_THROWS_WITH(sum(doubled(a.clone().set_requires_grad())).backward(),
                    Contains("compute outside of NoGrad, where record() does nothing"));
}
