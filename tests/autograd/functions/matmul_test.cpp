#include "pleat/autograd/functions/matmul.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/create.h"
#include "pleat/core/random.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

Tensor random64(const Shape& shape) { return randn(shape, {.dtype = float64}); }

void check_derivatives(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  CHECK(gradcheck(f, inputs));
  CHECK(gradgradcheck(f, inputs));
}

}  // namespace

TEST_CASE("matmul is differentiable for vectors, matrices and batches", "[matmul]") {
  const auto f = [](const std::vector<Tensor>& t) { return matmul(t[0], t[1]); };
  const auto check = [&](const Shape& a, const Shape& b) {
    CAPTURE(to_string(a), to_string(b));
    check_derivatives(f, {random64(a), random64(b)});
  };
  check({3}, {3});
  check({2, 3}, {3});
  check({3}, {3, 2});
  check({2, 3}, {3, 2});
  check({2, 2, 3}, {3});
  check({3}, {2, 3, 2});
  check({2, 2, 3}, {3, 2});
  check({2, 3}, {2, 3, 2});
  check({2, 1, 2, 3}, {2, 3, 1});
  check({1, 2, 3}, {2, 3, 2});
  check_derivatives(f, {transpose(random64({3, 2}), 0, 1), slice(random64({3, 4}), 1, 0, 4, 2)});
  check_derivatives(f, {permute(random64({3, 2, 2}), {2, 1, 0}), transpose(random64({2, 3}), 0, 1)});
}

TEST_CASE("gradients of empty products", "[matmul]") {
  const Tensor a = zeros({0, 3}).set_requires_grad();
  const Tensor b = zeros({3, 2}).set_requires_grad();
  sum(matmul(a, b)).backward();
  CHECK(a.grad().shape() == Shape{0, 3});
  CHECK(b.grad().to_vector() == std::vector<float>(6));
}

TEST_CASE("addmm is differentiable", "[matmul]") {
  const auto f = [](const std::vector<Tensor>& t) {
    return addmm(t[0], t[1], t[2], {.beta = 0.5, .alpha = -2});
  };
  for (const Shape& input : {Shape{2, 4}, Shape{4}, Shape{2, 1}})
    check_derivatives(f, {random64(input), random64({2, 3}), random64({3, 4})});
}

TEST_CASE("linear is differentiable", "[matmul]") {
  const auto f = [](const std::vector<Tensor>& t) { return linear(t[0], t[1], t[2]); };
  for (const Shape& x : {Shape{3}, Shape{4, 3}, Shape{2, 2, 3}})
    check_derivatives(f, {random64(x), random64({2, 3}), random64({2})});
  check_derivatives(f, {transpose(random64({3, 4}), 0, 1), transpose(random64({3, 2}), 0, 1), random64({2})});
  check_derivatives([](const std::vector<Tensor>& t) { return linear(t[0], t[1]); },
                    {random64({2, 3}), random64({2, 3})});
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

TEST_CASE("einsum is differentiable", "[einsum]") {
  const auto check = [](const std::string& equation, const std::vector<Shape>& shapes) {
    CAPTURE(equation);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(random64(shape));
    check_derivatives([&](const std::vector<Tensor>& t) { return einsum(equation, t); }, inputs);
  };
  check("ij,jk->ki", {{2, 3}, {3, 2}});
  check("bij,bjk->bik", {{2, 2, 3}, {2, 3, 2}});
  check("ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 2}});
  check("ii,j->ij", {{2, 2}, {3}});
  check("...i,...i->...", {{2, 1, 3}, {2, 3}});
  check("i,i,i->i", {{3}, {3}, {3}});
}
