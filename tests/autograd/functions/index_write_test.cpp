#include <functional>
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

TEST_CASE("the in-place forms change x and its gradient as the others do", "[index]") {
  const Tensor i = tensor({0, 2, 0});
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor& x, const Tensor& v)> function;
    std::function<Tensor(const Tensor& x, const Tensor& v)> in_place;
  };
  using X = const Tensor&;
  const Tensor wide = expand(unsqueeze(i, 1), {3, 4});
  const std::vector<Case> cases = {
      {"index_put_", [=](X x, X v) { return index_put(x, {i}, v); },
       [=](X x, X v) { return index_put_(x, {i}, v); }},
      {"index_put_, added", [=](X x, X v) { return index_put(x, {i}, v, true); },
       [=](X x, X v) { return index_put_(x, {i}, v, true); }},
      {"index_put_ a number", [=](X x, X v) { return index_put(x, {i}, 5) * v; },
       [=](X x, X v) { return index_put_(x, {i}, 5) * v; }},
      {"index_copy_", [=](X x, X v) { return index_copy(x, 0, i, v); },
       [=](X x, X v) { return index_copy_(x, 0, i, v); }},
      {"index_fill_", [=](X x, X v) { return index_fill(x, 0, i, 5) * v; },
       [=](X x, X v) { return index_fill_(x, 0, i, 5) * v; }},
      {"index_add_", [=](X x, X v) { return index_add(x, 0, i, v); },
       [=](X x, X v) { return index_add_(x, 0, i, v); }},
      {"scatter_", [=](X x, X v) { return scatter(x, 0, wide, v); },
       [=](X x, X v) { return scatter_(x, 0, wide, v); }},
      {"scatter_add_", [=](X x, X v) { return scatter_add(x, 0, wide, v); },
       [=](X x, X v) { return scatter_add_(x, 0, wide, v); }},
  };
  for (const Case& c : cases)
    for (const bool turned : {false, true}) {
      CAPTURE(c.name, turned);
      const Tensor start = turned ? transpose(ramp({4, 3}), 0, 1) : ramp({3, 4});
      const Tensor values = ramp({3, 4}) + 20;
      // Off the tape.
      const Tensor x = turned ? transpose(ramp({4, 3}).clone(), 0, 1) : start.clone();
      const uint64_t version = x.version();
      const Tensor expected = c.function(start, values);
      CHECK(c.in_place(x, values).to_vector() == expected.to_vector());
      CHECK(x.version() > version);
      // On it.
      const auto gradients = [&](const auto& f) {
        const Tensor a = start.clone().set_requires_grad();
        const Tensor v = values.clone().set_requires_grad();
        const Tensor y = f(a * 2, v);
        sum(y * y).backward();
        return std::pair(a.grad().to_vector(), v.grad().to_vector());
      };
      CHECK(gradients(c.in_place) == gradients(c.function));
      // Only the values are on it.
      const Tensor v = values.clone().set_requires_grad();
      const Tensor out = start.clone();
      (void)c.in_place(out, v);
      CHECK(out.requires_grad() ==
            (std::string(c.name) != "index_put_ a number" && std::string(c.name) != "index_fill_"));
    }
  const Tensor leaf = zeros({3, 4}).set_requires_grad();
  CHECK_THROWS_AS(index_put_(leaf, {i}, 1), AutogradError);
}

TEST_CASE("values may lie in what is written", "[index]") {
  const Tensor x = ramp({4});
  index_put_(x, {tensor({0, 1, 2, 3})}, ops::slice(flip(x, 0), 0, 0, 4));
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
