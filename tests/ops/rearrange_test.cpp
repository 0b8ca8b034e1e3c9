#include "pleat/ops/shape/rearrange.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

Tensor random64(const Shape& shape) { return randn(shape, {.dtype = float64}); }

/// Both derivatives of a linear f, squared so that the second is not zero.
void check_derivatives(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const auto squared = [&](const std::vector<Tensor>& t) {
    const Tensor y = f(t);
    return y * y;
  };
  CHECK(gradcheck(squared, inputs));
  CHECK(gradgradcheck(squared, inputs));
}

}  // namespace

TEST_CASE("a tensor may be joined twice, and to one of another type", "[join]") {
  const auto twice = [](const std::vector<Tensor>& t) { return cat({t[0], t[1], t[0]}); };
  check_derivatives(twice, {random64({2, 3}), random64({1, 3})});
  check_derivatives([](const std::vector<Tensor>& t) { return split(t[0], 2, 1)[1] * split(t[0], 2, 1)[0]; },
                    {random64({2, 4, 2})});
  const Tensor half = ones({2}, {.dtype = float16}).set_requires_grad();
  const Tensor single = ones({2}).set_requires_grad();
  sum(cat({half, single})).backward();
  CHECK(half.grad().dtype() == float16);
}

TEST_CASE("a tensor may be repeated no time", "[rearrange]") {
  const Tensor x = ones({2}).set_requires_grad();
  sum(repeat(x, {0})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 0});
}

TEST_CASE("padding of nothing is differentiable", "[pad]") {
  using enum PadMode;
  for (const auto mode : {constant, reflect, replicate, circular}) {
    const Tensor x = zeros({0, 3}).set_requires_grad();
    sum(pad(x, {1, 1}, {.mode = mode})).backward();
    CHECK(x.grad().shape() == Shape{0, 3});
  }
}
