#include "pleat/ops/matmul/matmul.h"

#include <functional>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::relative_error;

namespace {

Tensor random(const Shape& shape, DType dtype) {
  if (is_floating(dtype)) return ops::cast(randn(shape, {.dtype = float64}), dtype);
  return ops::cast(randint(-9, 10, shape), dtype);
}

/// [..., m, k] x [..., k, n] in float64 by a plain loop over broadcast batches.
std::vector<double> plain_product(const Tensor& a, const Tensor& b) {
  Shape batch = broadcast(Shape(a.shape().begin(), a.shape().end() - 2),
                          Shape(b.shape().begin(), b.shape().end() - 2), "test");
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Shape shape_a = batch, shape_b = batch;
  shape_a.insert(shape_a.end(), {m, k});
  shape_b.insert(shape_b.end(), {k, n});
  const auto left = expand(a, shape_a).to_vector<double>();
  const auto right = expand(b, shape_b).to_vector<double>();
  std::vector<double> result;
  for (int64_t i = 0; i < count(batch); ++i)
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += left[static_cast<std::size_t>((i * m + r) * k + l)] *
                 right[static_cast<std::size_t>((i * k + l) * n + c)];
        result.push_back(sum);
      }
  return result;
}

/// Relative error allowed: sums in the type, or in float32 with one rounding of operands and result for half
/// types.
double tolerance(DType dtype) {
  switch (dtype) {
    case float64:
      return 1e-13;
    case float32:
      return 1e-6;
    case float16:
      return 1e-3;
    case bfloat16:
      return 8e-3;
    default:
      return 0;
  }
}

/// A matrix or batch of the shape in other layouts: transposed, with gaps, neither stride 1, overlapping
/// rows.
std::vector<Tensor> layouts(const Shape& shape, DType dtype) {
  Shape swapped = shape;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  Shape wide = shape;
  wide.back() *= 2;
  Shape gaps = shape;
  gaps.back() += 3;
  Shape single = shape;
  single[single.size() - 2] = 1;
  return {random(shape, dtype), transpose(random(swapped, dtype), -1, -2),
          slice(random(wide, dtype), -1, 0, wide.back(), 2),
          narrow(random(gaps, dtype), -1, 1, shape.back()), expand(random(single, dtype), shape)};
}

}  // namespace

TEST_CASE("matmul reads operands in any layout", "[matmul]") {
  for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32})
    for (const Tensor& a : layouts({2, 7, 5}, dtype))
      for (const Tensor& b : layouts({5, 6}, dtype)) {
        CAPTURE(a.describe(), b.describe());
        const Tensor y = matmul(a, b);
        CHECK(y.dtype() == dtype);
        CHECK(y.shape() == Shape{2, 7, 6});
        CHECK(y.is_contiguous());
        CHECK(relative_error(y, plain_product(a, b)) <= tolerance(dtype));
        const Tensor one = select(a, 0, 1);
        CHECK(relative_error(matmul(one, b), plain_product(one, b)) <= tolerance(dtype));
      }
}

TEST_CASE("matmul broadcasts batches", "[matmul]") {
  const auto check = [](const Shape& a, const Shape& b, const Shape& expected) {
    CAPTURE(to_string(a), to_string(b));
    const Tensor x = random(a, float64);
    const Tensor y = random(b, float64);
    const Tensor product = matmul(x, y);
    CHECK(product.shape() == expected);
    CHECK(relative_error(product, plain_product(x, y)) <= 1e-13);
  };
  check({3, 2, 4}, {3, 4, 5}, {3, 2, 5});
  check({3, 1, 2, 4}, {6, 4, 5}, {3, 6, 2, 5});
  check({2, 4}, {3, 4, 5}, {3, 2, 5});
  check({1, 2, 4}, {1, 1, 4, 5}, {1, 1, 2, 5});
  check({3, 2, 2, 4}, {1, 4, 5}, {3, 2, 2, 5});
  check({0, 2, 4}, {4, 5}, {0, 2, 5});
  check({3, 0, 4}, {3, 4, 5}, {3, 0, 5});
  check({3, 2, 0}, {3, 0, 5}, {3, 2, 5});
  // Nothing may have any strides, those of an expanded tensor, too.
  const Tensor nothing = expand(zeros({1, 1}), {2, 0});
  CHECK(matmul(nothing, transpose(nothing, 0, 1)).to_vector() == std::vector<float>(4));
  const Tensor permuted = permute(random({2, 4, 3}, float64), {1, 2, 0});
  const Tensor y = random({2, 5}, float64);
  CHECK(relative_error(matmul(permuted, y), plain_product(permuted, y)) <= 1e-13);
}

namespace {

/// matmul(a, b) summed to `shape`, in float64.
std::vector<double> plain_sum(const Tensor& a, const Tensor& b, const Shape& shape) {
  const Tensor product = matmul(a.to(float64), b.to(float64));
  const auto added = product.shape().size() - shape.size();
  Dims dims;
  for (std::size_t d = 0; d < product.shape().size(); ++d)
    if (d < added || shape[d - added] != product.shape()[d]) dims.push_back(static_cast<int64_t>(d));
  return (dims.empty() ? product : sum(product, dims, true)).to_vector<double>();
}

}  // namespace

TEST_CASE("matmul_sum_to adds up the products of a batch", "[matmul]") {
  manual_seed(1);  // of numbers that cancel out the error may be any
  const auto check = [](const Shape& a, const Shape& b, const Shape& to) {
    CAPTURE(to_string(a), to_string(b), to_string(to));
    for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32})
      for (const Tensor& x : layouts(a, dtype))
        for (const Tensor& y : layouts(b, dtype)) {
          CAPTURE(x.describe(), y.describe());
          const Tensor sum = ops::matmul_sum_to(x, y, to);
          CHECK(sum.dtype() == dtype);
          CHECK(sum.shape() == to);
          CHECK(relative_error(sum, plain_sum(x, y, to)) <= 2 * tolerance(dtype));
        }
  };
  check({3, 2, 4}, {3, 4, 5}, {2, 5});
  check({3, 2, 4}, {3, 4, 5}, {1, 2, 5});
  check({3, 2, 4}, {3, 4, 5}, {3, 2, 5});
  check({6, 2, 2, 4}, {6, 2, 4, 3}, {2, 2, 3});
  check({2, 6, 2, 4}, {2, 6, 4, 3}, {2, 1, 2, 3});
  check({2, 3, 2, 2, 4}, {2, 3, 2, 4, 3}, {3, 1, 2, 3});
  check({2, 3, 2, 4}, {2, 3, 4, 3}, {2, 3});
  check({4, 3, 1}, {4, 1, 5}, {3, 5});  // columns and rows of one element
  check({4, 1, 1}, {4, 1, 1}, {1, 1});
  check({5, 1, 3}, {5, 3, 1}, {1, 1});
  check({3, 2, 4}, {4, 5}, {2, 5});  // what one operand alone has
  check({1, 2, 4}, {3, 4, 5}, {2, 5});
  check({2, 1, 2, 4}, {3, 4, 5}, {2, 1, 2, 5});
}

TEST_CASE("matmul_sum_to of batches whose matrices lie unevenly", "[matmul]") {
  for (const DType dtype : {float32, int64}) {
    const Tensor a = permute(random({3, 2, 4, 3, 5}, dtype), {1, 0, 2, 3, 4});
    const Tensor b = narrow(random({2, 3, 6, 5, 4}, dtype), 2, 1, 4);
    for (const Shape& to : {Shape{3, 4}, Shape{4, 3, 4}, Shape{3, 1, 3, 4}, Shape{2, 3, 1, 3, 4}})
      CHECK(relative_error(ops::matmul_sum_to(a, b, to), plain_sum(a, b, to)) <= 2 * tolerance(dtype));
  }
}

TEST_CASE("matmul_sum_to of nothing is zero", "[matmul]") {
  CHECK(ops::matmul_sum_to(zeros({0, 2, 3}), zeros({0, 3, 2}), {2, 2}).to_vector() == std::vector<float>(4));
  CHECK(ops::matmul_sum_to(zeros({4, 2, 0}), zeros({4, 0, 2}), {2, 2}).to_vector() == std::vector<float>(4));
  CHECK(ops::matmul_sum_to(zeros({4, 0, 3}), zeros({4, 3, 2}), {0, 2}).shape() == Shape{0, 2});
}

TEST_CASE("matmul_sum_to gives the same bits for any number of threads", "[matmul]") {
  const int threads = num_threads();
  // Many small terms, few large ones, a large and a small result, several sums.
  const std::vector<std::pair<Shape, Shape>> factors = {{{700, 33, 16}, {700, 16, 50}},
                                                        {{3, 20, 9000}, {3, 9000, 30}},
                                                        {{40, 300, 20}, {40, 20, 200}},
                                                        {{90, 9, 30, 20}, {90, 9, 20, 30}},
                                                        {{9, 90, 30, 20}, {9, 90, 20, 30}}};
  for (const auto& [left, right] : factors) {
    const Tensor a = random(left, float32);
    const Tensor b = random(right, float32);
    Shape to(a.shape().begin() + 1, a.shape().end() - 1);
    to.push_back(b.size(-1));
    CAPTURE(to_string(left));
    std::vector<std::vector<float>> results;
    for (const int number : {1, 2, 3, 7}) {
      set_num_threads(number);
      results.push_back(ops::matmul_sum_to(a, b, to).to_vector());
    }
    set_num_threads(threads);
    for (const auto& result : results) CHECK((result == results[0]));
    CHECK(relative_error(ops::matmul_sum_to(a, b, to), plain_sum(a, b, to)) <= 3e-6);
  }
}

TEST_CASE("matmul takes vectors as rows and columns", "[matmul]") {
  const Tensor v = tensor({1, 2, 3});
  const Tensor m = tensor({{1, 0, 2}, {0, 1, 1}, {5, 5, 5}});
  const Tensor dot = matmul(v, v);
  CHECK(dot.shape().empty());
  CHECK(dot.item<int>() == 14);
  CHECK(matmul(m, v).to_vector<int>() == std::vector<int>{7, 5, 30});
  CHECK(matmul(v, m).to_vector<int>() == std::vector<int>{16, 17, 19});
  CHECK(matmul(expand(m, {4, 2, 3, 3}), v).shape() == Shape{4, 2, 3});
  CHECK(matmul(v, expand(m, {4, 2, 3, 3})).shape() == Shape{4, 2, 3});
  CHECK(matmul(zeros({0}), zeros({0})).item() == 0);
}

TEST_CASE("matmul keeps its operands' type and wraps integers", "[matmul]") {
  const Tensor bytes = full({1, 2}, 200, {.dtype = uint8});
  CHECK(matmul(bytes, transpose(bytes, 0, 1)).item<int>() == (2 * 200 * 200) % 256);
  CHECK_THROWS_AS(matmul(ones({2, 2}, {.dtype = boolean}), ones({2, 2}, {.dtype = boolean})), DTypeError);
}

TEST_CASE("matmul gives the same bits for any number of threads", "[matmul]") {
  const int threads = num_threads();
  const Tensor a = random({5, 150, 300}, float32);
  const Tensor b = random({5, 300, 200}, float32);
  const Tensor one = random({300, 200}, float32);
  std::vector<std::vector<float>> results;
  for (const int number : {1, 2, 3, 7}) {
    set_num_threads(number);
    auto result = matmul(a, b).to_vector();
    const auto folded = matmul(a, one).to_vector();
    result.insert(result.end(), folded.begin(), folded.end());
    results.push_back(std::move(result));
  }
  set_num_threads(threads);
  for (const auto& result : results) CHECK((result == results[0]));
}

TEST_CASE("matmul names sizes that do not fit", "[matmul]") {
  CHECK_THROWS_WITH(
      matmul(ones({2, 3}), ones({4, 5})),
      Contains(
          "matmul: the last size of the left and the last but one of the right must be equal, got [2, 3] "
          "and [4, 5]: 3 and 4"));
  CHECK_THROWS_WITH(matmul(ones({2, 3}), ones({2})), Contains("and the size of the right must be equal"));
  CHECK_THROWS_WITH(matmul(ones({}), ones({2})), Contains("numbers multiply with *"));
  CHECK_THROWS_WITH(matmul(ones({2, 2, 3}), ones({3, 3, 2})),
                    Contains("matmul: shapes [2] and [3] do not broadcast"));
}

TEST_CASE("addmm scales and adds", "[matmul]") {
  const Tensor a = tensor({{1., 2.}, {3., 4.}});
  const Tensor b = tensor({{1., 0.}, {2., 1.}});
  CHECK(addmm(tensor({10., 20.}), a, b).to_vector() == std::vector<float>{15, 22, 21, 24});
  CHECK(addmm(tensor({10., 20.}), a, b, {.beta = 0.5, .alpha = 2}).to_vector() ==
        std::vector<float>{15, 14, 27, 18});
  const Tensor nan = full({1}, std::numeric_limits<double>::quiet_NaN());
  CHECK(addmm(nan, a, b, {.beta = 0}).to_vector() == std::vector<float>{5, 2, 11, 4});
  const Tensor whole = tensor({{1, 2}, {3, 4}});
  CHECK(addmm(whole, whole, whole, {.beta = 2, .alpha = -1}).to_vector<int>() ==
        std::vector<int>{-5, -6, -9, -14});
  CHECK(addmm(a.to(bfloat16), a.to(bfloat16), b.to(bfloat16)).dtype() == bfloat16);
  CHECK_THROWS_WITH(addmm(whole, whole, whole, {.alpha = 0.5}),
                    "addmm: beta and alpha must be integers for tensors of int64");
  CHECK_THROWS_WITH(addmm(ones({3}), a, b), Contains("addmm: shapes [3] and [2, 2] do not broadcast"));
  CHECK_THROWS_WITH(addmm(ones({1, 2, 2}), a, b),
                    "addmm: the input [1, 2, 2] does not broadcast to the product's [2, 2]");
  CHECK_THROWS_AS(addmm(ones({2}), ones({2}), b), ShapeError);
  CHECK_THROWS_AS(addmm(ones({2}), ones({2, 3}), b), ShapeError);
}

TEST_CASE("linear works along the last dimension", "[matmul]") {
  for (const DType dtype : {float64, float32, bfloat16}) {
    const Tensor weight = random({4, 3}, dtype);
    const Tensor bias = random({4}, dtype);
    for (const Tensor& x : layouts({2, 5, 3}, dtype)) {
      const Tensor y = linear(x, weight, bias);
      CHECK(y.shape() == Shape{2, 5, 4});
      CHECK(y.dtype() == dtype);
      auto expected = plain_product(x, transpose(weight, 0, 1));
      const auto added = bias.to_vector<double>();
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i % 4];
      CHECK(relative_error(y, expected) <= tolerance(dtype));
    }
  }
  const Tensor weight = tensor({{1., 2.}});
  CHECK(linear(tensor({3., 4.}), weight).to_vector() == std::vector<float>{11});
  CHECK(linear(tensor({3., 4.}), weight, tensor({1.})).shape() == Shape{1});
  CHECK(linear(zeros({0, 2}), weight).shape() == Shape{0, 1});
  CHECK(linear(zeros({3, 0}), zeros({2, 0}), ones({2})).to_vector() == std::vector<float>{1, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH(
      linear(ones({2, 3}), weight),
      "linear: the last size of the input must be 2, the second of the weight [1, 2], got an input [2, 3]");
  CHECK_THROWS_WITH(linear(ones({2}), weight, ones({2})), Contains("the bias must be [1]"));
  CHECK_THROWS_AS(linear(ones({2}), ones({2})), ShapeError);
  CHECK_THROWS_AS(linear(ones({}), weight), ShapeError);
}

TEST_CASE("the gradient of a matrix that a batch shares takes no memory for each of its products",
          "[matmul]") {
  const int64_t n = 512, rows = 96, depth = 96, columns = 4;
  const auto peak_of = [&](const Tensor& a, const Tensor& b, const Tensor& shared) {
    const Tensor y = matmul(a, b);
    const Tensor dy = randn(y.shape());
    const int64_t before = allocator_statistics().allocated;
    reset_peak_statistics();
    const Tensor gradient = grad({y}, {shared}, {dy})[0];
    CHECK(gradient.shape() == shared.shape());
    return allocator_statistics().peak - before;
  };
  const int64_t each_product = n * rows * depth * 4;
  const Tensor w = randn({rows, depth}).set_requires_grad();
  CHECK(peak_of(w, randn({n, depth, columns}), w) < each_product / 4);
  CHECK(peak_of(randn({n, columns, rows}), w, w) < each_product / 4);
  CHECK(peak_of(transpose(randn({n, rows, columns}), 1, 2), w, w) < each_product / 4);
  const Tensor heads = randn({2, rows, depth}).set_requires_grad();
  CHECK(peak_of(heads, randn({n, 2, depth, columns}), heads) < each_product / 4);
}

TEST_CASE("gradients of empty products", "[matmul]") {
  const Tensor a = zeros({0, 3}).set_requires_grad();
  const Tensor b = zeros({3, 2}).set_requires_grad();
  sum(matmul(a, b)).backward();
  CHECK(a.grad().shape() == Shape{0, 3});
  CHECK(b.grad().to_vector() == std::vector<float>(6));
  const Tensor shared = ones({2, 3}).set_requires_grad();
  sum(matmul(shared, zeros({0, 3, 4}))).backward();
  CHECK(shared.grad().to_vector() == std::vector<float>(6));
}

TEST_CASE("gradients of a linear layer of an empty batch", "[matmul]") {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  const Tensor w = ones({2, 3}).set_requires_grad();
  sum(linear(x, w, ones({2}))).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
  CHECK(w.grad().to_vector() == std::vector<float>(6));
}

TEST_CASE("half types get half gradients", "[matmul]") {
  const Tensor x = ones({2, 3}, {.dtype = float16}).set_requires_grad();
  const Tensor w = ones({4, 3}, {.dtype = float16}).set_requires_grad();
  sum(linear(x, w)).backward();
  CHECK(x.grad().dtype() == float16);
  CHECK(w.grad().to_vector() == std::vector<float>(12, 2));
}

TEST_CASE("a product's precision holds in its backward pass, after the scope has ended", "[matmul][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu("cuda");
  Generator generator(3);
  const Tensor a = randn({64, 256}, {}, generator).to(gpu);
  const Tensor b = randn({256, 128}, {}, generator).to(gpu);
  const Tensor dy = randn({64, 128}, {}, generator).to(gpu);
  using Product = std::function<Tensor(const Tensor&, const Tensor&, MatmulOptions)>;
  const std::vector<Product> products = {
      [](const Tensor& x, const Tensor& w, MatmulOptions o) { return matmul(x, w, o); },
      [](const Tensor& x, const Tensor& w, MatmulOptions o) { return linear(x, transpose(w, 0, 1), {}, o); },
      [](const Tensor& x, const Tensor& w, MatmulOptions o) {
        return addmm(zeros({1}, {.device = x.device()}), x, w, {.precision = o.precision});
      },
      [](const Tensor& x, const Tensor& w, MatmulOptions o) {
        return einsum("ij,jk->ik", {x, w}, o);
      }};
  for (const Product& product : products) {
    const auto gradient = [&](std::optional<Precision> scope, MatmulOptions options) {
      const Tensor x = a.clone().set_requires_grad();
      Tensor y;
      {
        const PrecisionScope guard(scope.value_or(Precision::highest));
        y = product(x, b, options);
      }
      y.backward(dy);
      return x.grad().to_vector();
    };
    const auto exact = gradient({}, {});
    const auto rounded = gradient({}, {.precision = Precision::medium});
    CHECK(rounded != exact);
    CHECK(gradient(Precision::medium, {}) == rounded);
    CHECK(gradient(Precision::medium, {.precision = Precision::highest}) == exact);
  }
}
