#include "pleat/ops/elementwise/math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor uniform(Shape shape, double low, double high, DType dtype) {
  const Tensor x = empty(std::move(shape), {.dtype = dtype});
  Generator generator(1);
  fill_uniform_(x, low, high, generator);
  return x;
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using Values = std::vector<double>;

}  // namespace

TEST_CASE("special values") {
  for (const DType dtype : {float32, float64}) {
    CAPTURE(dtype == float64);
    const Tensor ends = tensor({-infinity, infinity, 0.0, -1000.0, 1000.0}, dtype);
    CHECK(values(exp(ends)) == Values{0, infinity, 1, 0, dtype == float64 ? infinity : infinity});
    CHECK(values(expm1(ends)) == Values{-1, infinity, 0, -1, infinity});
    CHECK(values(tanh(ends)) == Values{-1, 1, 0, -1, 1});
    CHECK(values(erf(ends)) == Values{-1, 1, 0, -1, 1});
    CHECK(values(sigmoid(ends)) == Values{0, 1, 0.5, 0, 1});
    CHECK(values(relu(ends)) == Values{0, infinity, 0, 0, 1000});
    CHECK(values(leaky_relu(ends, 0.5)) == Values{-infinity, infinity, 0, -500, 1000});
    CHECK(values(elu(ends, 2)) == Values{-2, infinity, 0, -2, 1000});
    CHECK(values(softplus(ends, {})) ==
          Values{0, infinity, dtype == float64 ? std::log(2.0) : std::log(2.0f), 0, 1000});
    CHECK(values(log_sigmoid(tensor({-1000.0, 1000.0}, dtype))) == Values{-1000, 0});
    const Tensor large = tensor({-1000.0, 1000.0}, dtype);
    for (const auto function : {silu, mish, hardswish}) CHECK(values(function(large)) == Values{0, 1000});
    CHECK(values(gelu(large, GeluApproximation::none)) == Values{0, 1000});
    CHECK(values(gelu(large, GeluApproximation::tanh)) == Values{0, 1000});
    const Tensor positive = tensor({0.0, infinity, 1.0}, dtype);
    CHECK(values(log(positive)) == Values{-infinity, infinity, 0});
    CHECK(values(log2(positive)) == Values{-infinity, infinity, 0});
    CHECK(values(sqrt(positive)) == Values{0, infinity, 1});
    CHECK(values(rsqrt(positive)) == Values{infinity, 0, 1});
    CHECK(values(log1p(tensor({-1.0, infinity, 0.0}, dtype))) == Values{-infinity, infinity, 0});
    CHECK(std::isnan(log(tensor({-1.0}, dtype)).item<double>()));
    CHECK(std::isnan(sqrt(tensor({-1.0}, dtype)).item<double>()));
    CHECK(std::isnan(log1p(tensor({-2.0}, dtype)).item<double>()));
  }
  CHECK(values(round(tensor({0.5, 1.5, -2.5}))) == Values{0, 2, -2});
}

TEST_CASE("integers become float32 where results are floating, else stay") {
  const Tensor x = tensor({0, 1, 2});
  CHECK(exp(x).dtype() == float32);
  CHECK(exp(tensor({true, false})).dtype() == float32);
  CHECK(atan2(x, x).dtype() == float32);
  CHECK(lerp(x, x, tensor({0.5})).dtype() == float32);
  for (const DType dtype : {uint8, int32, int64}) {
    const Tensor n = x.to(dtype);
    for (const auto function : {abs, sign, square, floor, ceil, round, trunc, relu})
      CHECK(function(n).dtype() == dtype);
    CHECK(maximum(n, n).dtype() == dtype);
    CHECK(pow(n, 2).dtype() == dtype);
    CHECK(pow(n, 2.0).dtype() == float32);
    CHECK(clamp(n, {.min = 1}).dtype() == dtype);
    CHECK(clamp(n, {.min = 0.5}).dtype() == float32);
    CHECK(remainder(n, 2).dtype() == dtype);
  }
  CHECK(values(abs(tensor({-3, 3}))) == Values{3, 3});
  CHECK(values(sign(tensor({-3, 0, 3}))) == Values{-1, 0, 1});
  CHECK(values(relu(tensor({-3, 3}))) == Values{0, 3});
  CHECK(values(square(tensor({-3, 3}))) == Values{9, 9});
  CHECK_THROWS_WITH(abs(tensor({true})), Contains("abs: needs numbers, got bool"));
  CHECK_THROWS_WITH(round(tensor({true})), Contains("round: needs numbers, got bool"));
}

TEST_CASE("pow") {
  const Tensor x = uniform({1001}, 0.1, 3, float64);
  for (const double e : {0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 2.7, -1.3}) {
    CAPTURE(e);
    const auto got = values(pow(x, e));
    const auto at = values(x);
    double worst = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      worst = std::max(worst, std::abs(got[i] / std::pow(at[i], e) - 1));
    CHECK(worst <= 4 * std::numeric_limits<double>::epsilon());
    CHECK(allclose(pow(x, scalar(e, float64)), pow(x, e), {.rtol = 1e-15, .atol = 0}));
  }
  CHECK(values(pow(2, tensor({0.0, 3.0, -1.0}))) == Values{1, 8, 0.5});
  CHECK(values(pow(tensor({-2.0, 2.0}), 3)) == Values{-8, 8});
  CHECK(values(pow(tensor({2, -3, 0}), tensor({10, 3, 0}))) == Values{1024, -27, 1});
  CHECK(values(pow(tensor({1, -1, -1, 2}), tensor({-5, -3, -2, -1}))) == Values{1, -1, 1, 0});
  CHECK(values(pow(tensor({3}, uint8), 6)) == Values{729 % 256});
  CHECK(pow(tensor({true}), 2).dtype() == int64);
  CHECK(pow(tensor({2.0}, float16), 3).dtype() == float16);
  CHECK_THROWS_WITH(pow(tensor({2}), -1),
                    Contains("pow: integers cannot be raised to the negative integer power -1"));
  CHECK_THROWS_AS(pow(ones({2}), ones({3})), ShapeError);
}

TEST_CASE("remainder has the sign of the divisor") {
  CHECK(values(remainder(tensor({7, -7, 7, -7, 6}), tensor({3, 3, -3, -3, 3}))) == Values{1, 2, -2, -1, 0});
  CHECK(values(remainder(tensor({7.5, -7.5, 7.5, -7.5}), tensor({2.0, 2.0, -2.0, -2.0}))) ==
        Values{1.5, 0.5, -0.5, -1.5});
  CHECK(values(remainder(tensor({250}, uint8), 7)) == Values{250 % 7});
  CHECK(values(remainder(tensor({std::numeric_limits<int64_t>::min()}), -1)) == Values{0});
  CHECK(std::isnan(remainder(tensor({1.0}), 0.0).item()));
  CHECK_THROWS_WITH(remainder(tensor({1, 2}), tensor({1, 0})),
                    Contains("remainder: integers cannot be divided by 0"));
}

TEST_CASE("gelu's left tail is exact to the rounding of its exponent") {
  const Tensor x = uniform({1000}, -12, -0.5, float32);
  const auto ys = values(gelu(x, GeluApproximation::none));
  const auto xs = values(x);
  double worst = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double wanted = xs[i] * 0.5 * std::erfc(-xs[i] / std::sqrt(2.0));
    worst = std::max(worst, std::abs(ys[i] / wanted - 1) / (4 + xs[i] * xs[i] / 2));
  }
  CHECK(worst <= std::numeric_limits<float>::epsilon());
}

TEST_CASE("softplus explains a bad beta") {
  CHECK_THROWS_WITH(softplus(ones({2}), {.beta = 0}),
                    Contains("softplus: beta must be above 0 and finite, got 0"));
}

TEST_CASE("maximum and minimum") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = tensor({1.0, 5.0, nan, 1.0});
  const Tensor b = tensor({2.0, 3.0, 1.0, nan});
  const auto high = values(maximum(a, b));
  const auto low = values(minimum(a, b));
  CHECK(Values(high.begin(), high.begin() + 2) == Values{2, 5});
  CHECK(Values(low.begin(), low.begin() + 2) == Values{1, 3});
  CHECK((std::isnan(high[2]) && std::isnan(high[3]) && std::isnan(low[2]) && std::isnan(low[3])));
  CHECK(maximum(tensor({true, false}), tensor({false, false})).dtype() == boolean);
  CHECK(values(maximum(tensor({1, 2}), tensor({{0}, {5}}))) == Values{1, 2, 5, 5});
}

TEST_CASE("clamp") {
  const Tensor x = tensor({-2.0, 0.5, 3.0, std::numeric_limits<double>::quiet_NaN()});
  const auto clamped = values(clamp(x, {.min = -1, .max = 1}));
  CHECK(Values(clamped.begin(), clamped.begin() + 3) == Values{-1, 0.5, 1});
  CHECK(std::isnan(clamped[3]));
  CHECK(values(clamp(tensor({-2.0, 3.0}), {.min = 0})) == Values{0, 3});
  CHECK(values(clamp(tensor({-2.0, 3.0}), {.max = 0})) == Values{-2, 0});
  CHECK(values(clamp(tensor({-2.0, 3.0}), {.min = 2, .max = 1})) == Values{1, 1});
  CHECK(values(clamp(tensor({0, 200}, uint8), {.min = -5, .max = 300})) == Values{0, 200});
  CHECK(values(clamp(tensor({-2, 3}), {.min = 0.5})) == Values{0.5, 3});
  CHECK_THROWS_WITH(clamp(x, {}), Contains("clamp: needs a bound, min or max or both"));
}

TEST_CASE("lerp hits both ends exactly and broadcasts") {
  const Tensor a = uniform({100}, -1, 1, float32);
  const Tensor b = uniform({100}, 10, 1000, float32);
  CHECK(array_equal(lerp(a, b, scalar(0.0)), a));
  CHECK(array_equal(lerp(a, b, scalar(1.0)), b));
  CHECK(values(lerp(tensor({0.0, 2.0}), tensor({4.0, 4.0}), tensor({{0.25}, {0.75}}))) ==
        Values{1, 2.5, 3, 3.5});
  CHECK_THROWS_AS(lerp(a, b, ones({3})), ShapeError);
}

TEST_CASE("atan2 knows the quadrants") {
  const double pi = std::atan2(0.0, -1.0);
  CHECK(allclose(atan2(tensor({1.0, 1.0, -1.0, -1.0}, float64), tensor({1.0, -1.0, -1.0, 1.0}, float64)),
                 tensor({pi / 4, 3 * pi / 4, -3 * pi / 4, -pi / 4}, float64), {.rtol = 1e-15}));
}
