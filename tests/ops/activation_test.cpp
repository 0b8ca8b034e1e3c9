#include "pleat/ops/elementwise/activation.h"

#include <cmath>
#include <limits>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;

TEST_CASE("first and second derivatives of smooth activations stay finite far out") {
  struct Case {
    const char* name;
    Tensor (*function)(const Tensor&);
  };
  const std::vector<Case> smooth = {
      {"sigmoid", sigmoid},
      {"log_sigmoid", log_sigmoid},
      {"tanh", tanh},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu by tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }},
      {"silu", silu},
      {"mish", mish},
      {"elu", [](const Tensor& x) { return elu(x) + square(x); }},
      {"selu", [](const Tensor& x) { return selu(x) + square(x); }},
      {"celu", [](const Tensor& x) { return celu(x, 0.5) + square(x); }},
      {"softsign", softsign},
      {"tanhshrink", [](const Tensor& x) { return tanhshrink(x) + square(x); }},
  };
  for (const Case& c : smooth)
    for (const DType dtype : {float32, float64}) {
      CAPTURE(c.name, dtype == float64);
      const Tensor x = tensor({-1000.0, -100.0, 100.0, 1000.0}, dtype).set_requires_grad();
      const Tensor dx = grad({c.function(x)}, {x}, {ones({4}, {.dtype = dtype})}, {.create_graph = true})[0];
      const Tensor ddx = grad({sum(dx)}, {x})[0];
      const Tensor everywhere = ones({4}, {.dtype = boolean});
      CHECK(array_equal(isfinite(dx), everywhere));
      CHECK(array_equal(isfinite(ddx), everywhere));
      x.set_requires_grad();
      CHECK(array_equal(isfinite(grad({c.function(x)}, {x}, {ones({4}, {.dtype = dtype})})[0]), everywhere));
    }
}

TEST_CASE("activations at their kinks: the stated derivatives") {
  const auto slopes = [](Tensor (*function)(const Tensor&), std::initializer_list<double> at) {
    const Tensor x = tensor(at, float64).set_requires_grad();
    sum(function(x)).backward();
    return x.grad().to_vector<double>();
  };
  using Slopes = std::vector<double>;
  CHECK(slopes(relu, {-1, 0, 1}) == Slopes{0, 0, 1});
  CHECK(slopes([](const Tensor& x) { return leaky_relu(x, 0.5); }, {-1, 0, 1}) == Slopes{0.5, 0.5, 1});
  CHECK(slopes([](const Tensor& x) { return elu(x, 0.5); }, {0, 1}) == Slopes{0.5, 1});
  CHECK(slopes(selu, {-0.0, 0, 1})[1] == 1.0507009873554804934 * 1.6732632423543772848);
  CHECK(slopes([](const Tensor& x) { return celu(x, 0.5); }, {0, 1}) == Slopes{1, 1});
  CHECK(slopes(softsign, {-1, 0, 1}) == Slopes{0.25, 1, 0.25});
  CHECK(slopes(hardswish, {-4, -3, 3, 4}) == Slopes{0, 0, 1, 1});
  CHECK(slopes(relu6, {-1, 0, 1, 6, 7}) == Slopes{0, 0, 1, 0, 0});
  CHECK(slopes([](const Tensor& x) { return hardtanh(x); }, {-2, -1, 0, 1, 2}) == Slopes{0, 0, 1, 0, 0});
  CHECK(slopes([](const Tensor& x) { return softshrink(x, 1); }, {-2, -1, 0, 1, 2}) == Slopes{1, 0, 0, 0, 1});
  CHECK(slopes([](const Tensor& x) { return softshrink(x, 0); }, {-1, 0, 1}) == Slopes{1, 0, 1});
  CHECK(slopes([](const Tensor& x) { return hardshrink(x, 1); }, {-2, -1, 0, 1, 2}) == Slopes{1, 0, 0, 0, 1});
  CHECK(slopes([](const Tensor& x) { return threshold(x, 1, 7); }, {0, 1, 2}) == Slopes{0, 0, 1});
}

TEST_CASE("prelu: one slope or one for each channel") {
  const Tensor x = tensor({{-2.0, -4.0}, {0.0, 3.0}}).set_requires_grad();
  const Tensor weight = tensor({0.5, 0.25}).set_requires_grad();
  const Tensor y = prelu(x, weight);
  CHECK(y.to_vector() == std::vector<float>{-1, -1, 0, 3});
  sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0.5, 0.25, 0.5, 1});
  CHECK(weight.grad().to_vector() == std::vector<float>{-2, -4});
  CHECK(prelu(tensor({-2}), tensor({0.5})).to_vector() == std::vector<float>{-1});
  CHECK(prelu(scalar(-2.0), tensor({0.5})).shape() == Shape{});
  for (const DType dtype : {float16, bfloat16, float32}) {
    const Tensor image =
        test::uniform({2, 3, 2, 2}, -2, 2).to(dtype).to(MemoryFormat::channels_last).detach();
    const Tensor slopes = test::uniform({3}, 0.1, 1, 2).to(dtype).detach().set_requires_grad();
    image.set_requires_grad();
    const Tensor result = prelu(image, slopes);
    CHECK(result.memory_format() == MemoryFormat::channels_last);
    result.backward(ones_like(result));
    CHECK(image.grad().memory_format() == MemoryFormat::channels_last);
    CHECK(slopes.grad().dtype() == dtype);
  }
  CHECK_THROWS_AS(prelu(ones({3}), ones({3})), ShapeError);
  CHECK_THROWS_AS(prelu(ones({2, 3}), ones({3, 1})), ShapeError);
}

TEST_CASE("softshrink of infinities, of NaN, and with an infinite lambd") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = tensor({-infinity, -0.5, -0.0, 0.5, 1.0, infinity});
  CHECK(softshrink(x).to_vector() == std::vector<float>{-infinity, 0, 0, 0, 0.5, infinity});
  CHECK(softshrink(x, infinity).to_vector() == std::vector<float>(6));
  const Tensor nan = tensor({std::nan("")}).set_requires_grad();
  const Tensor y = softshrink(nan);
  CHECK(std::isnan(y.item()));
  sum(y).backward();
  CHECK(nan.grad().item() == 1);
}

TEST_CASE("hardshrink and threshold of infinities and of NaN, which stays and passes its gradient") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = tensor({-infinity, -0.5, -0.0, 0.75, infinity});
  CHECK(hardshrink(x).to_vector() == std::vector<float>{-infinity, 0, 0, 0.75, infinity});
  CHECK(hardshrink(x, infinity).to_vector() == std::vector<float>(5));
  CHECK(threshold(x, 0, -infinity).to_vector() ==
        std::vector<float>{-infinity, -infinity, -infinity, 0.75, infinity});
  for (Tensor (*f)(const Tensor&) : {+[](const Tensor& t) { return hardshrink(t); },
                                     +[](const Tensor& t) { return threshold(t, 0, 1); }}) {
    const Tensor nan = tensor({std::nan("")}).set_requires_grad();
    const Tensor y = f(nan);
    CHECK(std::isnan(y.item()));
    sum(y).backward();
    CHECK(nan.grad().item() == 1);
  }
}

TEST_CASE("softmin of unsigned integers does not wrap around") {
  const Tensor y = softmin(tensor({0, 1, 255}).to(uint8), 0);
  CHECK(y.dtype() == float32);
  CHECK(y.to_vector()[0] == Approx(1 / (1 + std::exp(-1.0))));
}

TEST_CASE("relu_ changes in place, on the tape when needed") {
  const Tensor x = tensor({-2.0, 0.5, 2.0});
  relu_(x);
  CHECK(x.to_vector() == std::vector<float>{0, 0.5, 2});
  const Tensor w = tensor({-2.0, 0.5, 2.0}).set_requires_grad();
  const Tensor y = w * 3;
  relu_(y);
  sum(y).backward();
  CHECK(y.to_vector() == std::vector<float>{0, 1.5, 6});
  CHECK(w.grad().to_vector() == std::vector<float>{0, 3, 3});
  CHECK_THROWS_AS(relu_(w), AutogradError);
}
