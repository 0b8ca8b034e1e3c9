#include <functional>
#include <utility>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

/// What is used after it was moved from, or before it has a value, says which of the two.

namespace {

nn::Linear small() { return nn::Linear{{.in_features = 3, .out_features = 3}}; }

}  // namespace

TEST_CASE("a module that was moved from is refused wherever it is used") {
  const Tensor x = ones({2, 3});
  const auto refused = [](const std::string& type, const std::function<void()>& use) {
    CHECK_THROWS_WITH(use(), type + ": this module was moved from; use the one that it was moved to");
  };
  nn::Linear fc = small();
  nn::Linear other = std::move(fc);
  refused("Linear", [&] { fc(x); });
  refused("Linear", [&] { fc.parameters(); });
  refused("Linear", [&] { fc.state_dict(); });
  refused("Linear", [&] { fc.eval(); });
  refused("Linear", [&] { fc.to(float64); });
  refused("Linear", [&] { nn::clone(fc); });
  refused("Linear", [&] { nn::to_string(fc); });
  other(x);
  fc = small();
  fc(x);
  fc = std::move(other);
  fc(x);
  refused("Linear", [&] { other(x); });

  nn::Sequential net{small(), nn::ReLU{}};
  nn::Sequential moved = std::move(net);
  refused("Sequential", [&] { net(x); });
  refused("Sequential", [&] { net.forward(x); });
  refused("Sequential", [&] { net.add(nn::ReLU{}); });
  refused("Sequential", [&] { net[0]; });
  refused("Sequential", [&] { net["0"]; });
  refused("Sequential", [&] {
    for (nn::Module& module : net) module.eval();
  });
  nn::Sequential outer{std::move(moved)};
  outer(x);
  refused("Sequential", [&] { moved(x); });

  // One that never had modules is the identity.
  nn::Sequential none;
  CHECK(none(x).to_vector() == x.to_vector());

  nn::Residual block{{.body = small(), .shortcut = small()}};
  nn::Residual taken = std::move(block);
  refused("Residual", [&] { block(x); });
  nn::AnyModule shortcut = std::move(taken.shortcut);
  CHECK_THROWS_WITH(taken(x), "AnyModule: its module was moved away; use the one that it was moved to");
  CHECK_THROWS_WITH(taken.parameters(), Contains("AnyModule: its module was moved away"));
  taken.shortcut = std::move(shortcut);
  taken(x);

  nn::Lambda function{[](const Tensor& y) { return y; }};
  nn::Lambda same = std::move(function);
  refused("Lambda", [&] { function(x); });
  refused("Lambda", [&] { function.forward(x); });
  CHECK_THROWS_WITH(nn::Lambda{std::function<Tensor(const Tensor&)>{}}, "Lambda: there is no function in it");
  CHECK_THROWS_WITH(nn::AnyModule{}(x), "AnyModule: there is no module in it; give it one first");
}

TEST_CASE("modules that grow in a vector stay whole") {
  std::vector<nn::Linear> layers;
  for (int i = 0; i < 5; ++i) layers.push_back(small());
  for (nn::Linear& layer : layers) layer(ones({1, 3}));
}

TEST_CASE("an undefined tensor says what it may be") {
  Tensor x = ones({2});
  const Tensor y = std::move(x);
  CHECK_THROWS_WITH(
      x + y,
      "tensor: this Tensor is undefined: it was never given a value (zeros({2, 3}) is one), or was "
      "moved from (use the one that it was moved to)");
}

TEST_CASE("a gradient that is missing says why when it is used") {
  const Tensor plain = ones({2});
  CHECK_THROWS_WITH(plain.grad() * 2, Contains("because the tensor does not require one; call "
                                               "set_requires_grad() (of a module: requires_grad_(true))"));
  const Tensor leaf = ones({2}).set_requires_grad();
  CHECK_THROWS_WITH(leaf.grad().to_vector(),
                    Contains("no backward() has reached the tensor since it was made"));
  const Tensor y = leaf * 2;
  CHECK_THROWS_WITH(y.grad().shape(), Contains("call retain_grad() on it before backward()"));
  y.retain_grad();
  CHECK_THROWS_WITH(y.grad().shape(), Contains("no backward() has reached the tensor"));
  sum(y).backward();
  CHECK(leaf.grad().to_vector() == std::vector<float>{2, 2});
  CHECK(y.grad().defined());
  leaf.set_grad({});
  CHECK_FALSE(leaf.grad().defined());
  CHECK_THROWS_AS(leaf.grad() + leaf, Error);
  const Tensor missing = leaf.grad();
  const Tensor copy = missing;
  CHECK_THROWS_WITH(copy.item(), Contains("zero_grad()"));
  leaf.set_grad(missing);
  CHECK_FALSE(leaf.grad().defined());
}
