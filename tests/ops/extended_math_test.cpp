// What is special about functions of the kind of nan_to_num, xlogy, quantile and searchsorted.

#include <cmath>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/quantile.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/join.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");
}  // namespace

TEST_CASE("nan_to_num has the largest finite numbers in place of infinities") {
  const Tensor x = tensor({not_a_number, infinity, -infinity, 2.0});
  for (const auto& [dtype, largest] :
       std::vector<std::pair<DType, double>>{{float16, 65504},
                                             {bfloat16, std::ldexp(255, 120)},
                                             {float32, std::numeric_limits<float>::max()},
                                             {float64, std::numeric_limits<double>::max()}})
    CHECK(nan_to_num(x.to(dtype)).to_vector<double>() == std::vector<double>{0, largest, -largest, 2});
  const Tensor leaf = x.detach().set_requires_grad();
  sum(nan_to_num(leaf)).backward();
  CHECK(leaf.grad().to_vector() == std::vector<float>{0, 0, 0, 1});
  CHECK(nan_to_num(tensor({int64_t{3}})).dtype() == int64);
}

TEST_CASE("xlogy is 0 where x is, and has gradients there") {
  const Tensor x = tensor({0.0, 0.0, 0.0, 1.0}).set_requires_grad();
  const Tensor y = tensor({0.0, -1.0, 2.0, 0.0}).set_requires_grad();
  const Tensor z = xlogy(x, y);
  CHECK(z.to_vector<double>() == std::vector<double>{0, 0, 0, -infinity});
  CHECK(std::isnan(xlogy(tensor({0.0}), tensor({not_a_number})).item()));
  const Grads d = grad({sum(z)}, {x, y});
  CHECK(d[0].to_vector()[0] == 0);
  CHECK(d[0].to_vector()[1] == 0);
  CHECK(d[0].to_vector()[2] == Approx(std::log(2.0)));
  CHECK(d[1].to_vector<double>() == std::vector<double>{0, 0, 0, infinity});
}

TEST_CASE("logit is exact around a half, infinite at 0 and 1, NaN beyond") {
  CHECK(logit(from_vector<double>({0.5 + 1e-12})).item<double>() == Approx(4e-12).epsilon(1e-3).margin(0));
  CHECK(logit(tensor({0.0, 1.0})).to_vector<double>() == std::vector<double>{-infinity, infinity});
  for (const double x : {-0.5, 1.5, not_a_number}) CHECK(std::isnan(logit(tensor({x})).item()));
}

TEST_CASE("a NaN makes medians and quantiles of its line NaN, and is put behind all others") {
  const Tensor x = tensor({{1.0, not_a_number, 3.0}, {4.0, 6.0, 5.0}});
  const auto medians = median(x, {.dim = 1}).to_vector();
  CHECK(std::isnan(medians[0]));
  CHECK(medians[1] == 5);
  CHECK(std::isnan(quantile(x, 0.0).item()));
  CHECK(searchsorted(tensor({1.0, 2.0}), tensor({not_a_number, infinity})).to_vector<int64_t>() ==
        std::vector<int64_t>{2, 2});
  CHECK(median(scalar(3.0)).item() == 3);
  CHECK(median(scalar(3.0), {.dim = 0}).shape().empty());
}

TEST_CASE("unbind and meshgrid give views; diff ends with nothing") {
  const Tensor x = zeros({2, 3});
  fill_(unbind(x, 1)[2], 1);
  CHECK(x.to_vector() == std::vector<float>{0, 0, 1, 0, 0, 1});
  CHECK(unbind(zeros({0, 3})).empty());
  CHECK(meshgrid({}).empty());
  CHECK(meshgrid({scalar(2.0), ones({3})})[0].shape() == Shape{1, 3});
  CHECK(diff(x, 9).shape() == Shape{2, 0});
  CHECK(diff(x, 0).shape() == x.shape());
}
