#include "pleat/autograd/functions/rearrange.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/join.h"
#include "pleat/autograd/functions/pad.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
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

void check_derivatives(const std::function<Tensor(const Tensor&)>& f, const Shape& shape) {
  const auto function = [&](const std::vector<Tensor>& t) { return f(t[0]); };
  Shape swapped = shape;
  std::swap(swapped.front(), swapped.back());
  check_derivatives(function, {random64(shape)});
  check_derivatives(function, {transpose(random64(swapped), 0, -1)});
  if (shape.size() > 2) check_derivatives(function, {random64(shape).to(MemoryFormat::channels_last)});
}

}  // namespace

TEST_CASE("joining and splitting are differentiable", "[join]") {
  const auto joined = [](int64_t dim) {
    return [dim](const std::vector<Tensor>& t) { return cat({t[0], t[1], t[0]}, dim); };
  };
  check_derivatives(joined(0), {random64({2, 3}), random64({1, 3})});
  check_derivatives(joined(-1), {random64({2, 3}), transpose(random64({2, 2}), 0, 1)});
  check_derivatives([](const std::vector<Tensor>& t) { return stack(t, -1); },
                    {random64({2, 3}), random64({2, 3})});
  check_derivatives([](const Tensor& x) { return split(x, 2, 1)[1] * split(x, 2, 1)[0]; }, {2, 4, 2});
  check_derivatives([](const Tensor& x) { return chunk(x, 2, -1)[1]; }, {2, 3});
  check_derivatives([](const Tensor& x) { return split_with_sizes(x, {1, 0, 2}, -1)[2]; }, {2, 3});
  const Tensor half = ones({2}, {.dtype = float16}).set_requires_grad();
  const Tensor single = ones({2}).set_requires_grad();
  sum(cat({half, single})).backward();
  CHECK(half.grad().dtype() == float16);
}

TEST_CASE("rearranging is differentiable", "[rearrange]") {
  check_derivatives([](const Tensor& x) { return flip(x, {0, -1}); }, {2, 3});
  check_derivatives([](const Tensor& x) { return roll(x, {1, -2}, {1, 0}); }, {3, 2, 2});
  check_derivatives([](const Tensor& x) { return roll(x, 3); }, {2, 3});
  check_derivatives([](const Tensor& x) { return repeat(x, {2, 1, 3}); }, {2, 3});
  check_derivatives([](const Tensor& x) { return tile(x, {2}); }, {2, 3});
  check_derivatives([](const Tensor& x) { return repeat_interleave(x, 3, 0); }, {2, 3});
  check_derivatives([](const std::vector<Tensor>& t) { return repeat(t[0], {2}); }, {random64({})});
  const Tensor x = ones({2}).set_requires_grad();
  sum(repeat(x, {0})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 0});
}

TEST_CASE("pad is differentiable", "[pad]") {
  using enum PadMode;
  for (const auto mode : {constant, reflect, replicate, circular}) {
    check_derivatives([&](const Tensor& x) { return pad(x, {2, 1}, {.mode = mode, .value = 3}); }, {2, 3});
    check_derivatives([&](const Tensor& x) { return pad(x, {1, 0, -1, 2}, {.mode = mode}); }, {1, 2, 3, 3});
    check_derivatives([&](const Tensor& x) { return pad(x, {-1, 0}, {.mode = mode}); }, {2, 3});
    const Tensor x = zeros({0, 3}).set_requires_grad();
    sum(pad(x, {1, 1}, {.mode = mode})).backward();
    CHECK(x.grad().shape() == Shape{0, 3});
  }
}
