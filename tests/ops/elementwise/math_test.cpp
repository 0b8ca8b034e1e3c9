#include "pleat/autograd/functions/math.h"

#include <cmath>
#include <limits>

#include "pleat/autograd/functions/activation.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  Tensor (*function)(const Tensor&);
  double (*reference)(double);
  double low, high;  ///< where it is tried
};

/// Every function of one tensor with floating results, its value from the standard library.
const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {"exp", exp, [](double x) { return std::exp(x); }, -20, 20},
      {"expm1", expm1, [](double x) { return std::expm1(x); }, -20, 20},
      {"expm1", expm1, [](double x) { return std::expm1(x); }, -1e-3, 1e-3},
      {"log", log, [](double x) { return std::log(x); }, 1e-3, 100},
      {"log", log, [](double x) { return std::log(x); }, 1e-38, 1e-37},
      {"log1p", log1p, [](double x) { return std::log1p(x); }, -0.9, 10},
      {"log1p", log1p, [](double x) { return std::log1p(x); }, -1e-3, 1e-3},
      {"log2", log2, [](double x) { return std::log2(x); }, 1e-3, 100},
      {"log10", log10, [](double x) { return std::log10(x); }, 1e-3, 100},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0, 100},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.01, 100},
      {"reciprocal", reciprocal, [](double x) { return 1 / x; }, -10, 10},
      {"sin", sin, [](double x) { return std::sin(x); }, -10, 10},
      {"cos", cos, [](double x) { return std::cos(x); }, -10, 10},
      {"tan", tan, [](double x) { return std::tan(x); }, -1.5, 1.5},
      {"asin", asin, [](double x) { return std::asin(x); }, -1, 1},
      {"acos", acos, [](double x) { return std::acos(x); }, -1, 1},
      {"atan", atan, [](double x) { return std::atan(x); }, -10, 10},
      {"sinh", sinh, [](double x) { return std::sinh(x); }, -10, 10},
      {"cosh", cosh, [](double x) { return std::cosh(x); }, -10, 10},
      {"tanh", tanh, [](double x) { return std::tanh(x); }, -12, 12},
      {"tanh", tanh, [](double x) { return std::tanh(x); }, -1e-3, 1e-3},
      {"erf", erf, [](double x) { return std::erf(x); }, -5, 5},
      {"erf", erf, [](double x) { return std::erf(x); }, -1e-3, 1e-3},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -40, 40},
      {"abs", abs, [](double x) { return std::abs(x); }, -5, 5},
      {"sign", sign, [](double x) { return x > 0   ? 1.0
                                           : x < 0 ? -1.0
                                                   : 0.0; }, -5, 5},
      {"square", square, [](double x) { return x * x; }, -5, 5},
      {"floor", floor, [](double x) { return std::floor(x); }, -5, 5},
      {"ceil", ceil, [](double x) { return std::ceil(x); }, -5, 5},
      {"round", round, [](double x) { return std::nearbyint(x); }, -5, 5},
      {"trunc", trunc, [](double x) { return std::trunc(x); }, -5, 5},
      {"relu", relu, [](double x) { return x > 0 ? x : 0; }, -5, 5},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.125); },
       [](double x) { return x > 0 ? x : 0.125 * x; }, -5, 5},
      {"elu", [](const Tensor& x) { return elu(x, 1.5); },
       [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, -20, 5},
      {"log_sigmoid", log_sigmoid,
       [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }, -40, 40},
      {"softplus", [](const Tensor& x) { return softplus(x, {}); },
       [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); }, -40, 40},
      {"softplus, beta 2", [](const Tensor& x) { return softplus(x, {.beta = 2}); },
       [](double x) { return x > 10 ? x : std::log1p(std::exp(2 * x)) / 2; }, -15, 15},
      {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, -20, 20},
      {"mish", mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -20, 20},
      {"hardswish", hardswish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -2.9, 5},
      {"gelu", [](const Tensor& x) { return gelu(x, GeluApproximation::none); },
       [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }, -0.5, 6},
      {"gelu by tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); },
       [](double x) {
         return x * 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
       },
       -0.5, 6},
  };
  return table;
}

Tensor uniform(Shape shape, double low, double high, DType dtype) {
  const Tensor x = empty(std::move(shape), {.dtype = dtype});
  Generator generator(1);
  fill_uniform_(x, low, high, generator);
  return x;
}

/// The largest |y - reference| / |reference| over the elements.
double worst_error(const Tensor& y, const Tensor& x, double (*reference)(double)) {
  const auto ys = y.to_vector<double>();
  const auto xs = x.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    const double wanted = reference(xs[i]);
    const double error = std::abs(ys[i] - wanted) / std::max(std::abs(wanted), 1e-300);
    worst = ys[i] == wanted ? worst : std::max(worst, error);
  }
  return worst;
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using Values = std::vector<double>;

}  // namespace

TEST_CASE("functions of one tensor agree with the standard library") {
  for (const Case& c : cases()) {
    CAPTURE(c.name, c.low, c.high);
    // An odd count, so that vectors have a rest. Errors are those of each element, in units of the last
    // place.
    const Tensor x = uniform({7, 143}, c.low, c.high, float64);
    CHECK(worst_error(c.function(x), x, c.reference) <= 4 * std::numeric_limits<double>::epsilon());
    const Tensor narrow = uniform({7, 143}, c.low, c.high, float32);
    const Tensor y = c.function(narrow);
    CHECK(y.dtype() == float32);
    CHECK(worst_error(y, narrow, c.reference) <= 4 * std::numeric_limits<float>::epsilon());
  }
}

TEST_CASE("elementwise functions compute half types in float32 and round once") {
  for (const Case& c : cases())
    for (const DType dtype : {float16, bfloat16}) {
      CAPTURE(c.name, dtype == float16);
      const Tensor x = uniform({50}, c.low, c.high, dtype);
      const Tensor y = c.function(x);
      CHECK(y.dtype() == dtype);
      CHECK(array_equal(y, c.function(x.to(float32)).to(dtype)));
    }
}

TEST_CASE("bits do not depend on layout, neighbours or threads") {
  const int threads = num_threads();
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Tensor x = uniform({2, 3, 4, 5}, c.low, c.high, float32);
    const Tensor y = c.function(x);
    CHECK(array_equal(c.function(x.to(MemoryFormat::channels_last)), y));
    CHECK(c.function(x.to(MemoryFormat::channels_last)).memory_format() == MemoryFormat::channels_last);
    const Tensor one = x.as_strided({}, {}, 77);
    CHECK(c.function(one).item<float>() == y.to_vector()[77]);
    CHECK(array_equal(c.function(ops::permute(x, {3, 1, 0, 2})), ops::permute(y, {3, 1, 0, 2})));
    CHECK(c.function(zeros({0, 3})).shape() == Shape{0, 3});
  }
  const Tensor large = uniform({70001}, -5, 5, float32);
  set_num_threads(1);
  const Tensor alone = exp(large);
  set_num_threads(3);
  CHECK(array_equal(exp(large), alone));
  set_num_threads(threads);
}

TEST_CASE("special values") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {float32, float64}) {
    CAPTURE(dtype == float64);
    for (const Case& c : cases()) {
      CAPTURE(c.name);
      CHECK((std::isnan(c.function(full({17}, nan, {.dtype = dtype})).to_vector()[3]) ||
             c.function == static_cast<Tensor (*)(const Tensor&)>(sign)));
    }
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

TEST_CASE("gelu's left tail is small, not exact") {
  // 1 + erf cancels there: the error is one of the result's neighbours at 1, not of the result.
  const Tensor x = uniform({1000}, -6, -0.5, float32);
  const auto ys = values(gelu(x, GeluApproximation::none));
  const auto xs = values(x);
  double worst = 0;
  for (std::size_t i = 0; i < xs.size(); ++i)
    worst = std::max(worst, std::abs(ys[i] - xs[i] * 0.5 * std::erfc(-xs[i] / std::sqrt(2.0))));
  CHECK(worst <= 6 * std::numeric_limits<float>::epsilon());
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
