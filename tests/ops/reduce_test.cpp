#include "pleat/ops/reduce/reduce.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor leaf(const Tensor& x) { return x.set_requires_grad(); }

Tensor random(Shape shape) {
  Generator generator(11);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_uniform_(x, -2, 2, generator);
  return x;
}

}  // namespace

TEST_CASE("gradients where a function has a corner") {
  const Tensor zero = leaf(zeros({3}));
  (norm(zero) + stddev(zero) + norm(zero, {}, {.p = 3})).backward();
  CHECK(zero.grad().to_vector() == std::vector<float>{0, 0, 0});
  const Tensor count = leaf(ones({3}));
  (norm(count, {}, {.p = 0}) + sum(count)).backward();
  CHECK(count.grad().to_vector() == std::vector<float>{1, 1, 1});
  const Tensor lost = leaf(full({2}, -infinity));
  logsumexp(lost).backward();
  CHECK(lost.grad().to_vector() == std::vector<float>{0, 0});
  for (const Tensor& x : {tensor({{0.0, 2.0, 3.0}, {1.0, 2.0, 4.0}}, float64),
                          tensor({{0.0, 2.0, 0.0}}, float64), tensor({{0.0, 0.0, 0.0}}, float64)}) {
    CHECK(gradcheck([](const std::vector<Tensor>& t) { return prod(t[0], 1); }, {x}));
    CHECK(gradgradcheck([](const std::vector<Tensor>& t) { return prod(t[0], 1); }, {x}));
  }
  const Tensor with_zeros = tensor({0.5, 0.0, 2.0, 0.0, 3.0}, float64);
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return cumprod(t[0], 0); }, {with_zeros}));
  CHECK(gradgradcheck([](const std::vector<Tensor>& t) { return cumprod(t[0], 0); }, {with_zeros}));
}

TEST_CASE("equal maxima share a gradient; with indices the first gets it") {
  const Tensor x = leaf(tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}));
  sum(max(x, 1) * tensor({4.0, 6.0})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 2, 2, 2, 2, 2});
  const Tensor y = leaf(tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}));
  const ValuesIndices best = max_with_indices(y, 1);
  CHECK(best.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 0});
  CHECK_FALSE(best.indices.requires_grad());
  sum(best.values * tensor({4.0, 6.0})).backward();
  CHECK(y.grad().to_vector() == std::vector<float>{0, 4, 0, 6, 0, 0});
  CHECK_FALSE(argmax(y).requires_grad());
}

TEST_CASE("gradients of reductions of one number and of an empty batch") {
  const Tensor x = leaf(scalar(3.0));
  (sum(x) + mean(x, 0) + max(x) + max_with_indices(x, 0).values).backward();
  CHECK(x.grad().item() == 4);
  const Tensor empty_batch = leaf(zeros({0, 3}));
  sum(sum(empty_batch, 1) + mean(empty_batch, 1) + max(empty_batch, 1)).backward();
  CHECK(empty_batch.grad().shape() == Shape{0, 3});
}

TEST_CASE("sum_to undoes broadcasting") {
  const Tensor x = ones({2, 3, 4});
  CHECK(sum_to(x, {3, 1}).to_vector() == std::vector<float>{8, 8, 8});
  CHECK(sum_to(x, {}).item() == 24);
  CHECK(sum_to(x, {2, 3, 4}).shape() == Shape{2, 3, 4});
  CHECK_THROWS_WITH(sum_to(x, {2, 4}), Contains("sum_to"));
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return sum_to(t[0], {3, 1}); }, {random({2, 3, 2})}));
}

TEST_CASE("options by name mean what they say") {
  const Tensor x = random({3, 4, 5});
  const auto same = [](const Tensor& got, const Tensor& wanted) {
    CHECK(got.shape() == wanted.shape());
    CHECK(array_equal(got, wanted));
  };
  same(norm(x, {.p = 1}), norm(x, {}, {.p = 1}));
  same(norm(x, {.dim = 1, .p = 1, .keepdim = true}), norm(x, 1, {.p = 1, .keepdim = true}));
  same(norm(x, {1}), norm(x, 1));
  same(var(x, {.correction = 0}), var(x, {}, {.correction = 0}));
  same(var(x, {.dim = {0, 2}, .correction = 0}), var(x, {0, 2}, {.correction = 0}));
  same(stddev(x, {.dim = 1, .keepdim = true}), stddev(x, 1, {.keepdim = true}));
  same(var_mean(x, {.correction = 0}).var, var_mean(x, {}, {.correction = 0}).var);
  same(var_mean(x, {.dim = 1}).mean, var_mean(x, 1).mean);
  // Other functions, which a GPU adds up in another order.
  CHECK(allclose(norm(x, {.p = 1}), sum(abs(x))));
  CHECK(allclose(var_mean(x, {.dim = 1}).mean, mean(x, 1)));
  same(sum(x, {.keepdim = true}), sum(x, {}, true));
  same(sum(x, {.dim = {0, 1}}), sum(x, {0, 1}));
  same(sum(x, {1}), sum(x, 1));
  same(sum(x, {}), sum(x));
  same(sum(x, std::vector<int>{0, 1}), sum(x, {0, 1}));
  same(mean(x, {.keepdim = true}), mean(x, {}, true));
  same(prod(x, {.dim = -1, .keepdim = true}), prod(x, -1, true));
  same(logsumexp(x, {.dim = 1}), logsumexp(x, 1));
  same(max(x, {.keepdim = true}), max(x, {}, true));
  same(min(x, {.dim = {1, 2}}), min(x, {1, 2}));
  same(any(x > 1, {.keepdim = true}), any(x > 1, {}, true));
  same(all(x > 1, {.dim = 0}), all(x > 1, 0));
  same(argmax(x, {.dim = 1, .keepdim = true}), argmax(x, 1, true));
  same(argmin(x, {.keepdim = true}), argmin(x, {}, true));
  const ReduceOptions options{.dim = 2, .keepdim = true};
  same(sum(x, options), sum(x, 2, true));

  CHECK_THROWS_WITH(norm(x, 1, {.dim = 2, .p = 1}),
                    Contains("norm: dimensions are named twice, [1] and .dim = [2]"));
  CHECK_THROWS_AS(var(x, 1, {.dim = 2}), ValueError);
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return norm(t[0], {.dim = 1, .p = 3}); }, {x}));
}

TEST_CASE("what has room is found where its square has none") {
  // Of numbers that are all `size` times those of x, a length is so many times that of x, and a direction the
  // same.
  const std::vector<std::pair<DType, std::vector<double>>> sizes = {
      {float16, {16384, 0x1p-10}},
      {bfloat16, {0x1p125, 0x1p-120}},
      {float32, {0x1p125, 0x1p70, 0x1p-80, 0x1p-126}},
      {float64, {0x1p1020, 0x1p600, 0x1p-1000}}};
  const Tensor x = tensor({{-0.5, 1.0, 0.25, 0.75}, {1.0, 1.0, -1.0, 0.5}}, float64);
  const Tensor other = tensor({{1.0, 1.0, 0.5, -0.5}, {0.25, 1.0, 1.0, 1.0}}, float64);
  for (const auto& [dtype, factors] : sizes)
    for (const double size : factors) {
      CAPTURE(name(dtype), size);
      const double tolerance = dtype == bfloat16 ? 8e-3 : dtype == float16 ? 1e-3 : 1e-6;
      const auto scaled = [&](const Tensor& t) { return (t * size).to(dtype); };
      const auto check = [&](const char* what, const Tensor& got, const Tensor& wanted,
                             double roundings = 1) {
        CAPTURE(what, got, wanted);
        CHECK(max(abs(got.to(float64) - wanted)).item() <= roundings * tolerance * max(abs(wanted)).item());
      };
      for (const double p : {1.0, 1.5, 2.0, 3.0, 20.0, -2.0, infinity, -infinity}) {
        CAPTURE(p);
        const Tensor xs = leaf(scaled(x)), plain = leaf(x.clone());
        const Tensor y = norm(xs, 1, {.p = p}), wanted = norm(plain, 1, {.p = p});
        check("norm", y.to(float64) / size, wanted);
        sum(y.to(float64)).backward();
        sum(wanted).backward();
        check("its gradient", xs.grad(), plain.grad(), std::isinf(p) ? 1 : 1 + std::abs(p));
      }
      if (dtype != float64) check("stddev", stddev(scaled(x), 1).to(float64) / size, stddev(x, 1));
      if (size > 1) {  // small ones have the eps of these functions as their length
        check("normalize", normalize(scaled(x)), normalize(x));
        check("cosine_similarity", cosine_similarity(scaled(x), scaled(other)), cosine_similarity(x, other));
      }
      check("pairwise_distance", pairwise_distance(scaled(x), scaled(other), {.eps = 0}).to(float64) / size,
            pairwise_distance(x, other, {.eps = 0}));
      check("cdist", cdist(scaled(x), scaled(other)).to(float64) / size, cdist(x, other));
      check("hypot", hypot(scaled(x), scaled(other)).to(float64) / size, hypot(x, other));
    }
  // The length has no room in float16, the direction has.
  const Tensor large = full({1000}, 60000, float16);
  CHECK(normalize(large, {.dim = 0}).to_vector()[0] == Approx(1 / std::sqrt(1000.0)).epsilon(1e-3));
  CHECK(cosine_similarity(large, large, {.dim = 0}).item() == Approx(1).epsilon(1e-3));
  const Tensor unlike = tensor({{60000.0, 60000.0}}, float16), target = tensor({1.0});
  CHECK(cosine_embedding_loss(unlike, tensor({{0.0, 60000.0}}, float16), target).item() ==
        Approx(1 - std::sqrt(0.5)).epsilon(1e-3));
  CHECK(local_response_norm(full({1, 1, 1}, 300, float16), {.size = 1, .alpha = 1, .beta = 0.5}).item() ==
        Approx(1).epsilon(1e-3));
}
