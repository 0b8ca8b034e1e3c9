#include "pleat/ops/matmul/matmul.h"

#include <functional>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

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
