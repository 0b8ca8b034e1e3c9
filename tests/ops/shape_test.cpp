#include "pleat/ops/shape/shape.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

Tensor leaf(const Tensor& x) { return x.set_requires_grad(); }

Tensor random64(const Shape& shape) { return randn(shape, {.dtype = float64}); }

}  // namespace

TEST_CASE("gradients of parts lie as the whole does", "[shape]") {
  const Tensor x = random64({2, 3, 4, 4}).to(MemoryFormat::channels_last).set_requires_grad();
  sum(slice(x, 2, 1, 3) * slice(x, 2, 1, 3)).backward();
  CHECK(x.grad().is_contiguous(MemoryFormat::channels_last));
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return select(t[0], 3, 1) * select(t[0], 3, 2); },
                  {x.detach()}));
}

TEST_CASE("overlapping windows add up", "[shape]") {
  const Tensor x = zeros({6}).set_requires_grad();
  sum(unfold_dimension(x, 0, 3, 1)).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{1, 2, 3, 3, 2, 1});
}

TEST_CASE("gradients of empty views", "[shape]") {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(transpose(narrow(x, 1, 1, 2), 0, 1)).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("x[i] is a part of the first dimension, for reading and writing") {
  const Tensor x = leaf(tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}));
  CHECK(x[1].to_vector() == std::vector<float>{4, 5, 6});
  CHECK(x[-2][2].item() == 3);
  CHECK_THROWS_AS(x[2], IndexError);
  CHECK_THROWS_AS(x[0][0][0], ShapeError);
  (x[1] * x[0][1]).backward(ones({3}));
  CHECK(x.grad().to_vector() == std::vector<float>{0, 15, 0, 2, 2, 2});

  const Tensor y = zeros({2, 3});
  Tensor row = y[0];
  row = ones({3});  // another tensor from here on
  CHECK(y.to_vector() == std::vector<float>(6, 0));
  y[0] = tensor({1.0, 2.0, 3.0});
  y[1] = 7;
  y[1][0] = x.detach()[0][2];
  CHECK(y.to_vector() == std::vector<float>{1, 2, 3, 3, 7, 7});
  select(y, 1, 2) = -1.5;
  narrow(y, 1, 0, 2) += 1;
  CHECK(y.to_vector() == std::vector<float>{2, 3, -1.5, 4, 8, -1.5});
  const Tensor truth = zeros({2}, boolean);
  truth[0] = true;
  CHECK(truth.to_vector<int>() == std::vector<int>{1, 0});
  CHECK_THROWS_AS((y[0] = ones({2})), ShapeError);
}

TEST_CASE("what is written into a part has gradients") {
  const Tensor x = leaf(tensor({1.0, 2.0, 3.0}));
  const Tensor y = zeros({2, 3});
  y[1] = x * x;
  narrow(y, 1, 0, 1) = 5;
  sum(y * 2).backward();
  CHECK(y.to_vector() == std::vector<float>{5, 0, 0, 5, 4, 9});
  CHECK(x.grad().to_vector() == std::vector<float>{0, 8, 12});
}
