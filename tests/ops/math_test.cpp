#include "pleat/ops/elementwise/math.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("pow at a base of 0 has finite derivatives where they exist") {
  const Tensor x = tensor({0.0, 0.0, 0.0}, float64).set_requires_grad();
  const Tensor e = tensor({0.0, 1.0, 2.0}, float64).set_requires_grad();
  sum(pow(x, e)).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 1, 0});
  CHECK(e.grad().to_vector() == std::vector<float>{0, 0, 0});
  const Tensor z = zeros({1}).set_requires_grad();
  sum(pow(z, 2)).backward();
  sum(pow(z, 0)).backward();
  CHECK(z.grad().item() == 0);
}

TEST_CASE("kinks: the stated choice") {
  const Tensor x = tensor({0.0, 1.0, -1.0}).set_requires_grad();
  sum(abs(x)).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 1, -1});
  x.set_grad({});
  sum(clamp(x, {.min = -1, .max = 1})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{1, 1, 1});
  const Tensor a = tensor({1.0, 2.0}).set_requires_grad();
  const Tensor b = tensor({1.0, 3.0}).set_requires_grad();
  sum(maximum(a, b)).backward();
  CHECK(a.grad().to_vector() == std::vector<float>{0.5, 0});
  CHECK(b.grad().to_vector() == std::vector<float>{0.5, 1});
}

TEST_CASE("fmod and floor_divide of signs, of zero and of the ends of integers") {
  const Tensor a = tensor({-7.0, 7.0, -7.0, 6.0, -0.0, 1.0, -1.0});
  const Tensor b = tensor({3.0, -3.0, -3.0, 3.0, 2.0, 0.0, 0.0});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(fmod(a, b).to_vector()[0] == -1);
  CHECK(fmod(a, b).to_vector()[1] == 1);
  CHECK(isnan(fmod(a, b))[5].item<bool>());
  const auto quotients = floor_divide(a, b).to_vector();
  CHECK(quotients == std::vector<float>{-3, -3, 2, 2, 0, infinity, -infinity});
  CHECK(std::signbit(quotients[4]));
  // 0.1 goes 9 times into 1, as 0.1 is a little more than a tenth, though the quotient rounds to 10.
  CHECK(floor_divide(tensor({1.0}, float64), 0.1).item<double>() == 9);
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor whole = tensor({int64_t{-7}, int64_t{7}, int64_t{-6}, least, least});
  const Tensor by = tensor({int64_t{3}, int64_t{-3}, int64_t{3}, int64_t{-1}, int64_t{2}});
  CHECK(floor_divide(whole, by).to_vector<int64_t>() == std::vector<int64_t>{-3, -3, -2, least, least / 2});
  CHECK(fmod(whole, by).to_vector<int64_t>() == std::vector<int64_t>{-1, 1, 0, 0, 0});
  CHECK(floor_divide(whole.to(int32), by.to(int32)).to_vector<int64_t>() ==
        std::vector<int64_t>{-3, -3, -2, 0, 0});
  CHECK(floor_divide(tensor({std::numeric_limits<int32_t>::min()}).to(int32), -1).item<int64_t>() ==
        std::numeric_limits<int32_t>::min());
  CHECK_THROWS_WITH(fmod(whole, 0), "fmod: integers cannot be divided by 0");
  CHECK_THROWS_WITH(floor_divide(whole, 0), "floor_divide: integers cannot be divided by 0");
}

TEST_CASE("tril and triu leave NaN and infinities of the other triangle out, and take any type") {
  const Tensor x = full({3, 3}, std::nan(""));
  CHECK(isnan(tril(x, -1)).to_vector<int>() == std::vector<int>{0, 0, 0, 1, 0, 0, 1, 1, 0});
  const Tensor mask = tril(ones({2, 3}, {.dtype = boolean}));
  CHECK(mask.dtype() == boolean);
  CHECK(mask.to_vector<int>() == std::vector<int>{1, 0, 0, 1, 1, 0});
  CHECK(triu(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(tril(zeros({2, 3, 0})).shape() == Shape{2, 3, 0});
  CHECK(array_equal(tril(x, -std::numeric_limits<int64_t>::max()), zeros({3, 3})));
}

TEST_CASE("clamp_ and lerp_ change in place, on the tape when needed") {
  const Tensor x = tensor({-2.0, 0.5, 2.0});
  clamp_(x, {.min = -1, .max = 1});
  CHECK(x.to_vector() == std::vector<float>{-1, 0.5, 1});
  lerp_(x, zeros({3}), 0.5);
  CHECK(x.to_vector() == std::vector<float>{-0.5, 0.25, 0.5});
  const Tensor w = tensor({-2.0, 0.5, 2.0}).set_requires_grad();
  const Tensor y = w * 1;
  clamp_(y, {.max = 1});
  lerp_(y, y * 3, 0.5);
  sum(y).backward();
  CHECK(y.to_vector() == std::vector<float>{-4, 1, 2});
  CHECK(w.grad().to_vector() == std::vector<float>{2, 2, 0});
  CHECK_THROWS_AS(clamp_(w, {.min = 0}), AutogradError);
  const Tensor n = arange(3);
  CHECK_THROWS_WITH(clamp_(n, {.min = 0.5}), Contains("which a tensor of int64 cannot hold"));
  CHECK_THROWS_WITH(lerp_(n, n, 0.5), Contains("lerp_: needs a floating type, got int64"));
  clamp_(n, {.min = 1});
  CHECK(n.to_vector<int>() == std::vector<int>{1, 1, 2});
  CHECK_THROWS_AS(lerp_(x, zeros({2, 3}), 0.5), ShapeError);
}

TEST_CASE("functions take a number where operators do, on either side") {
  const Tensor x = tensor({{1.5, -2.0}, {0.5, 4.0}}, float64);
  const auto same = [](const Tensor& got, const Tensor& wanted) { CHECK(array_equal(got, wanted)); };
  same(add(x, 1), x + 1);
  same(add(1, x), 1 + x);
  same(subtract(x, 2.5), x - 2.5);
  same(subtract(2.5, x), 2.5 - x);
  same(multiply(x, 3), x * 3);
  same(multiply(3, x), 3 * x);
  same(divide(x, 2), x / 2);
  same(divide(2, x), 2 / x);
  same(maximum(0, x), maximum(x, 0));
  same(minimum(0, x), minimum(x, 0));
  same(clamp(x, -1, 1), clamp(x, {.min = -1, .max = 1}));
  same(remainder(7, x), remainder(full_like(x, 7), x));
  same(less(1, x), 1 < x);
  same(less_equal(1.5, x), 1.5 <= x);
  same(greater(1, x), 1 > x);
  same(greater_equal(1.5, x), 1.5 >= x);
  same(equal(1.5, x), x == 1.5);
  same(not_equal(1.5, x), x != 1.5);
  CHECK(add(tensor({1}), 1).dtype() == int64);
  CHECK(add(tensor({1}), 0.5).dtype() == float32);

  using Function = std::function<Tensor(const Tensor&)>;
  const std::vector<Function> all{
      [](const Tensor& t) { return add(1, t); },      [](const Tensor& t) { return subtract(1, t); },
      [](const Tensor& t) { return multiply(3, t); }, [](const Tensor& t) { return divide(2, t); },
      [](const Tensor& t) { return maximum(0, t); },  [](const Tensor& t) { return minimum(0, t); }};
  for (const Function& f : all) CHECK(gradcheck([&](const std::vector<Tensor>& t) { return f(t[0]); }, {x}));

  const Tensor y = x.clone();
  add_(y, 1);
  multiply_(y, 2);
  subtract_(y, 0.5);
  divide_(y, 4);
  same(y, ((x + 1) * 2 - 0.5) / 4);
}
