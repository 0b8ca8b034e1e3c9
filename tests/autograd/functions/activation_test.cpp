#include "pleat/autograd/functions/activation.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/math.h"
#include "pleat/core/base/error.h"
#include "pleat/tests/autograd/functions/unary_cases.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::tests;
using Catch::Matchers::Contains;

namespace {

const std::vector<UnaryCase>& cases() {
  static const std::vector<UnaryCase> table = {
      {"relu above", relu, 0.1, 2},
      {"relu below", relu, -2, -0.1},
      {"sigmoid", sigmoid, -3, 3},
      {"leaky_relu above", [](const Tensor& x) { return leaky_relu(x * x); }, 0.1, 2},
      {"leaky_relu below", [](const Tensor& x) { return leaky_relu(-(x * x), 0.2); }, 0.1, 2},
      {"elu above", [](const Tensor& x) { return elu(x * x, 1.5); }, 0.1, 2},
      {"elu below", [](const Tensor& x) { return elu(x, 1.5); }, -2, -0.1},
      {"log_sigmoid", log_sigmoid, -3, 3},
      {"softplus", [](const Tensor& x) { return softplus(x); }, -3, 3},
      {"softplus, beta 2", [](const Tensor& x) { return softplus(x, {.beta = 2, .threshold = 3}); }, -3, 1.4},
      {"softplus, beyond the threshold", [](const Tensor& x) { return softplus(x * x, {.threshold = 3}); }, 2,
       3},
      {"gelu", [](const Tensor& x) { return gelu(x); }, -3, 3},
      {"gelu by tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }, -3, 3},
      {"silu", silu, -3, 3},
      {"mish", mish, -3, 3},
      {"hardswish inside", hardswish, -2.9, 2.9},
      {"hardswish above", [](const Tensor& x) { return hardswish(x * x); }, 2, 3},
      {"hardswish below", [](const Tensor& x) { return hardswish(-(x * x)) + x * x; }, 2, 3},
      {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x * x); }, 0.1, 1.5},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x * x, -1, 3); }, 0.1, 1.5},
      {"relu6", [](const Tensor& x) { return relu6(x * x); }, 0.1, 2},
  };
  return table;
}

}  // namespace

TEST_CASE("derivatives of the activation functions") {
  for (const UnaryCase& c : cases()) {
    CAPTURE(c.name);
    check_derivatives(c);
    check_both_backwards_agree(c);
    check_type_and_format_stay(c);
  }
}

TEST_CASE("first and second derivatives of smooth activations stay finite far out") {
  const std::vector<UnaryCase> smooth = {
      {"sigmoid", sigmoid, 0, 0},
      {"log_sigmoid", log_sigmoid, 0, 0},
      {"tanh", tanh, 0, 0},
      {"softplus", [](const Tensor& x) { return softplus(x); }, 0, 0},
      {"gelu", [](const Tensor& x) { return gelu(x); }, 0, 0},
      {"gelu by tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }, 0, 0},
      {"silu", silu, 0, 0},
      {"mish", mish, 0, 0},
      {"elu", [](const Tensor& x) { return elu(x) + square(x); }, 0, 0},
  };
  for (const UnaryCase& c : smooth)
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
  CHECK(slopes(hardswish, {-4, -3, 3, 4}) == Slopes{0, 0, 1, 1});
  CHECK(slopes(relu6, {-1, 0, 1, 6, 7}) == Slopes{0, 0, 1, 0, 0});
  CHECK(slopes([](const Tensor& x) { return hardtanh(x); }, {-2, -1, 0, 1, 2}) == Slopes{0, 0, 1, 0, 0});
}

TEST_CASE("prelu: one slope or one for each channel") {
  const auto f = [](const std::vector<Tensor>& t) { return prelu(t[0], t[1]); };
  for (const Tensor& x : {uniform({2, 3, 2}, 0.1, 2), uniform({2, 3, 2}, -2, -0.1),
                          uniform({2, 3, 2, 2}, -2, -0.1).to(MemoryFormat::channels_last)})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}}) {
      const Tensor weight = uniform(shape, 0.1, 1, 2);
      CHECK(gradcheck(f, {x, weight}));
      CHECK(gradgradcheck(f, {x, weight}));
    }
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
    const Tensor image = uniform({2, 3, 2, 2}, -2, 2).to(dtype).to(MemoryFormat::channels_last).detach();
    const Tensor slopes = uniform({3}, 0.1, 1, 2).to(dtype).detach().set_requires_grad();
    image.set_requires_grad();
    const Tensor result = prelu(image, slopes);
    CHECK(result.memory_format() == MemoryFormat::channels_last);
    result.backward(ones_like(result));
    CHECK(image.grad().memory_format() == MemoryFormat::channels_last);
    CHECK(slopes.grad().dtype() == dtype);
  }
  CHECK_THROWS_WITH(
      prelu(ones({2, 3}), ones({2})),
      Contains("prelu: weight must have one element, or one for each channel of [N, C, ...], got [2] beside"));
  CHECK_THROWS_AS(prelu(ones({3}), ones({3})), ShapeError);
  CHECK_THROWS_AS(prelu(ones({2, 3}), ones({3, 1})), ShapeError);
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

TEST_CASE("hardtanh explains bounds in the wrong order") {
  CHECK_THROWS_WITH(hardtanh(ones({2}), 1, -1), Contains("hardtanh: needs min <= max, got 1 and -1"));
}
