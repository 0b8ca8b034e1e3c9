#include "pleat/ops/shape/join.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("cat joins along any dimension", "[join]") {
  const Tensor a = tensor({{1, 2}, {3, 4}});
  const Tensor b = tensor({{5, 6}});
  CHECK(cat({a, b}).to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(cat({transpose(a, 0, 1), b, b}).to_vector<int>() == std::vector<int>{1, 3, 2, 4, 5, 6, 5, 6});
  CHECK(cat({a, transpose(b, 0, 1)}, -1).to_vector<int>() == std::vector<int>{1, 2, 5, 3, 4, 6});
  CHECK(cat({a, zeros({0, 2}, {.dtype = int64}), b}).shape() == Shape{3, 2});
  CHECK(cat({a, tensor({{0.5, 1.5}})}).dtype() == float32);
  CHECK(cat({a}).impl().storage != a.impl().storage);
}

TEST_CASE("cat keeps channels_last", "[join]") {
  const Tensor plain = reshape(ops::cast(arange(2 * 3 * 2 * 2), float32), {2, 3, 2, 2});
  const Tensor last = ops::to_format(plain, MemoryFormat::channels_last);
  for (const int64_t dim : {0, 1, 2, 3}) {
    const Tensor expected = cat({plain, plain}, dim);
    const Tensor y = cat({last, last}, dim);
    CHECK(y.memory_format() == MemoryFormat::channels_last);
    CHECK(y.to_vector() == expected.to_vector());
    CHECK(expected.is_contiguous());
    CHECK(cat({last, plain}, dim).is_contiguous());
  }
  // A tensor of one channel lies in both ways.
  const Tensor one = narrow(plain, 1, 0, 1);
  CHECK(cat({ops::copy(one), last}, 1).memory_format() == MemoryFormat::channels_last);
}

TEST_CASE("cat and stack name what does not fit", "[join]") {
  CHECK_THROWS_WITH(cat({}), "cat: needs at least one tensor");
  CHECK_THROWS_WITH(cat({scalar(1)}), Contains("use stack"));
  CHECK_THROWS_WITH(cat({ones({2, 3}), ones({2})}),
                    Contains("must have one rank, got [2, 3] and, as number 1, [2]"));
  CHECK_THROWS_WITH(
      cat({ones({2, 3}), ones({2, 4})}),
      Contains("cat: sizes except that of dimension 0 must be equal, got [2, 3] and, as number 1, [2, 4]"));
  CHECK_THROWS_AS(cat({ones({2})}, 1), IndexError);
  CHECK_THROWS_WITH(stack({ones({2}), ones({3})}),
                    Contains("stack: all tensors must have one shape, got [2] and [3]"));
  CHECK_THROWS_AS(stack({}), ValueError);
  CHECK_THROWS_AS(stack({ones({2})}, 2), IndexError);
}

TEST_CASE("stack adds a dimension", "[join]") {
  CHECK(stack({scalar(1), scalar(2)}).to_vector<int>() == std::vector<int>{1, 2});
  const Tensor a = tensor({1, 2});
  const Tensor b = tensor({3, 4});
  CHECK(stack({a, b}).to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  CHECK(stack({a, b}, -1).to_vector<int>() == std::vector<int>{1, 3, 2, 4});
  CHECK(stack({zeros({0}), zeros({0})}, 1).shape() == Shape{0, 2});
}

TEST_CASE("split and chunk are views", "[join]") {
  const Tensor x = reshape(arange(14), {7, 2});
  const auto shapes = [](const std::vector<Tensor>& pieces) {
    std::vector<int64_t> sizes;
    for (const Tensor& piece : pieces) sizes.push_back(piece.size(0));
    return sizes;
  };
  CHECK(shapes(split(x, 3)) == std::vector<int64_t>{3, 3, 1});
  CHECK(shapes(split(x, 100)) == std::vector<int64_t>{7});
  CHECK(shapes(chunk(x, 3)) == std::vector<int64_t>{3, 3, 1});
  CHECK(shapes(chunk(x, 4)) == std::vector<int64_t>{2, 2, 2, 1});
  CHECK(shapes(chunk(x, 100)) == std::vector<int64_t>(7, 1));
  CHECK(shapes(chunk(zeros({0}), 3)) == std::vector<int64_t>{0});
  CHECK(shapes(split(zeros({0}), 3)) == std::vector<int64_t>{0});
  CHECK(shapes(split_with_sizes(x, {0, 5, 2})) == std::vector<int64_t>{0, 5, 2});
  CHECK(split(x, 3)[1].impl().storage == x.impl().storage);
  CHECK(split(x, 1, -1)[1].to_vector<int>() == std::vector<int>{1, 3, 5, 7, 9, 11, 13});
  CHECK(split(x, 3)[2].to_vector<int>() == std::vector<int>{12, 13});
  CHECK_THROWS_WITH(split(x, 0), "split: the size of a piece must be at least 1, got 0");
  CHECK_THROWS_WITH(chunk(x, 0), "chunk: needs at least 1 chunk, got 0");
  CHECK_THROWS_WITH(split_with_sizes(x, {3, 3}), Contains("add up to 6, dimension 0 of [7, 2] has 7"));
  CHECK_THROWS_AS(split_with_sizes(x, {8, -1}), ShapeError);
  CHECK_THROWS_AS(split(scalar(1), 1), ShapeError);
  CHECK_THROWS_AS(chunk(x, 2, 2), IndexError);
}

TEST_CASE("a tensor may be joined twice, and to one of another type", "[join]") {
  const std::vector<Tensor> inputs{randn({2, 4}, {.dtype = float64}), randn({1, 4}, {.dtype = float64})};
  const auto joined = [](const std::vector<Tensor>& t) {
    const Tensor y = cat({t[0], t[1], t[0]});
    return y * y;
  };
  const auto divided = [](const std::vector<Tensor>& t) {
    return split(t[0], 2, 1)[1] * split(t[0], 2, 1)[0];
  };
  for (const TensorFunction& f : {TensorFunction(joined), TensorFunction(divided)}) {
    CHECK(gradcheck(f, inputs));
    CHECK(gradgradcheck(f, inputs));
  }
  const Tensor half = ones({2}, {.dtype = float16}).set_requires_grad();
  const Tensor single = ones({2}).set_requires_grad();
  sum(cat({half, single})).backward();
  CHECK(half.grad().dtype() == float16);
}
