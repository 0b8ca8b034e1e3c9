#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

using Numbers = std::vector<float>;

Tensor ramp(const Shape& shape) { return reshape(arange(0, count(shape), 1, {.dtype = float32}), shape); }

/// Both derivatives of f squared.
void check_derivatives(const TensorFunction& f, const std::vector<Shape>& shapes) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(randn(shape, {.dtype = float64}));
  const auto squared = [&](const std::vector<Tensor>& t) {
    const Tensor y = f(t);
    return y * y;
  };
  CHECK(gradcheck(squared, inputs));
  CHECK(gradgradcheck(squared, inputs));
}

}  // namespace

TEST_CASE("index_put writes where x[i, j] is", "[index]") {
  const Tensor x = ramp({3, 4});
  const Tensor i = tensor({0, 2}), j = tensor({1, -1});
  CHECK(index_put(x, {i, j}, tensor({-1.F, -2.F})).to_vector() ==
        Numbers{0, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -2});
  CHECK(index_put(x, {i}, tensor({{1.F}, {2.F}})).to_vector() == Numbers{1, 1, 1, 1, 4, 5, 6, 7, 2, 2, 2, 2});
  CHECK(index_put(x, {i}, 0).to_vector() == Numbers{0, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0});
  CHECK(index_put(x, {tensor({{1}, {2}}), tensor({0, 3})}, 9).to_vector() ==
        Numbers{0, 1, 2, 3, 9, 5, 6, 9, 9, 9, 10, 9});
  CHECK(index_put(x, {x > 6}, -1).to_vector() == Numbers{0, 1, 2, 3, 4, 5, 6, -1, -1, -1, -1, -1});
  CHECK(index_put(x, {tensor({true, false, true})}, 7).to_vector() ==
        Numbers{7, 7, 7, 7, 4, 5, 6, 7, 7, 7, 7, 7});
  // Of two that go to one place the last stands, or both are added.
  const Tensor twice = tensor({1, 1});
  CHECK(index_put(zeros({3}), {twice}, tensor({2.F, 3.F})).to_vector() == Numbers{0, 3, 0});
  CHECK(index_put(ones({3}), {twice}, tensor({2.F, 3.F}), true).to_vector() == Numbers{1, 6, 1});
  CHECK(index_put(ones({3}), {twice}, 2, true).to_vector() == Numbers{1, 5, 1});
  CHECK(x.to_vector() == ramp({3, 4}).to_vector());
}

TEST_CASE("index_copy and index_fill write along a dimension", "[index]") {
  const Tensor x = ramp({2, 3});
  const Tensor index = tensor({2, 0});
  CHECK(index_copy(x, 1, index, tensor({{-1.F, -2.F}, {-3.F, -4.F}})).to_vector() ==
        Numbers{-2, 1, -1, -4, 4, -3});
  CHECK(index_copy(transpose(x, 0, 1), 0, index, full({2, 2}, 9)).to_vector() == Numbers{9, 9, 1, 4, 9, 9});
  CHECK(index_fill(x, -1, index, 7).to_vector() == Numbers{7, 1, 7, 7, 4, 7});
  CHECK(index_copy(zeros({3}), 0, tensor({1, 1}), tensor({2.F, 3.F})).to_vector() == Numbers{0, 3, 0});
}

TEST_CASE("writing by indices is differentiable in both tensors, duplicates included", "[index]") {
  const Tensor i = tensor({0, 2, 0}), j = tensor({1, 3, 1});
  for (const bool accumulate : {false, true}) {
    CAPTURE(accumulate);
    const auto put = [&](std::vector<Tensor> indices) {
      return [=](const std::vector<Tensor>& t) { return index_put(t[0], indices, t[1], accumulate); };
    };
    check_derivatives(put({i, j}), {{3, 4}, {3}});
    check_derivatives(put({i, j}), {{3, 4}, {}});
    check_derivatives(put({i}), {{3, 4}, {3, 4}});
    check_derivatives(put({i}), {{3, 4}, {3, 1}});
    check_derivatives(put({tensor({{true, false, true}, {false, false, true}})}), {{2, 3, 2}, {3, 2}});
  }
  check_derivatives([&](const std::vector<Tensor>& t) { return index_copy(t[0], 1, j, t[1]); },
                    {{2, 4}, {2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_copy(t[0], 0, i, t[1]); },
                    {{3, 2}, {3, 1}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_fill(t[0], 1, j, 0.5); }, {{2, 4}});
}

TEST_CASE("values may lie in what is written", "[index]") {
  const Tensor x = ramp({4});
  index_put_(x, {tensor({0, 1, 2, 3})}, slice(flip(x, 0), 0, 0, 4));
  CHECK(x.to_vector() == Numbers{3, 2, 1, 0});
  const Tensor y = ramp({4});
  index_put_(y, {tensor({1, 2, 3})}, slice(y, 0, 0, 3));
  CHECK(y.to_vector() == Numbers{0, 0, 1, 2});
}

TEST_CASE("what is written may have gaps", "[index]") {
  const Tensor gaps = slice(ramp({3, 4}).clone(), 1, 0, 4, 2);
  index_fill_(gaps, 0, tensor({1}), 9);
  CHECK(gaps.to_vector() == Numbers{0, 2, 9, 9, 8, 10});
  index_put_(gaps, {tensor({0}), tensor({1})}, 7);
  CHECK(gaps.to_vector() == Numbers{0, 7, 9, 9, 8, 10});
}

TEST_CASE("writing by indices says what does not fit", "[index]") {
  const Tensor x = zeros({3, 4});
  CHECK_THROWS_WITH(index_put(x, {tensor({3})}, 1), Contains("index_put: index 3 at [0] is outside [-3, 3)"));
  CHECK_THROWS_AS(index_put(x, {tensor({-4})}, 1), IndexError);
  CHECK_THROWS_WITH(index_put(x, {tensor({0}), tensor({0}), tensor({0})}, 1),
                    "index_put: 3 indices for a tensor of 2 dimensions, [3, 4]");
  CHECK_THROWS_AS(index_put(x, {}, 1), ShapeError);
  CHECK_THROWS_WITH(index_put(x, {tensor({true, false})}, 1),
                    "index_put: the mask [2] must have the first sizes of the tensor [3, 4]");
  CHECK_THROWS_AS(index_put(x, {tensor({true, false, true}), tensor({0, 1})}, 1), ShapeError);
  CHECK_THROWS_WITH(index_put(x, {tensor({0, 1})}, zeros({3})),
                    "index_put: the values [3] do not broadcast to [2, 4]");
  CHECK_THROWS_AS(index_put(x, {tensor({0.5F})}, 1), DTypeError);
  CHECK_THROWS_WITH(index_put(x, {tensor({0})}, zeros({4}, {.dtype = float64})),
                    "index_put: the values must be float32 like the tensor, got float64");
  CHECK_THROWS_AS(index_put_(zeros({3}, {.dtype = int64}), {tensor({0})}, 0.5), DTypeError);
  CHECK_THROWS_AS(index_copy(x, 2, tensor({0}), zeros({3, 1})), IndexError);
  CHECK_THROWS_AS(index_copy(x, 1, tensor({{0}}), zeros({3, 1})), ShapeError);
  CHECK_THROWS_AS(index_copy(x, 1, tensor({0}), zeros({2, 1})), ShapeError);
}
