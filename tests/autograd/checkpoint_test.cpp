#include "pleat/autograd/checkpoint.h"

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;

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
