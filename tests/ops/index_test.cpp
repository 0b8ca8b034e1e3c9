#include "pleat/ops/index/index.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

Tensor random64(const Shape& shape) { return randn(shape, {.dtype = float64}); }

/// Both derivatives of a linear f, squared so that the second is not zero; plain and transposed.
void check_derivatives(const TensorFunction& f, const std::vector<Shape>& shapes) {
  const auto squared = [&](const std::vector<Tensor>& t) {
    const Tensor y = f(t);
    return y * y;
  };
  std::vector<Tensor> plain, turned;
  for (const Shape& shape : shapes) {
    plain.push_back(random64(shape));
    Shape swapped = shape;
    std::swap(swapped.front(), swapped.back());
    turned.push_back(transpose(random64(swapped), 0, -1));
  }
  for (const auto& inputs : {plain, turned}) {
    CHECK(gradcheck(squared, inputs));
    CHECK(gradgradcheck(squared, inputs));
  }
}

}  // namespace

TEST_CASE("gather and scatter_add are differentiable", "[index]") {
  const Tensor index = tensor({{0, 2, 2}, {1, 1, 0}});
  check_derivatives([&](const std::vector<Tensor>& t) { return gather(t[0], 1, index); }, {{2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return gather(t[0], 0, index); }, {{3, 4}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter_add(t[0], -1, index, t[1]); },
                    {{2, 4}, {2, 3}});
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(gather(x, 1, zeros({0, 1}, {.dtype = int64}))).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("scatter is differentiable in both tensors, duplicates included", "[index]") {
  const Tensor index = tensor({{0, 2, 0}, {1, 1, 1}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], 1, index, t[1]); },
                    {{2, 4}, {2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], -2, index, t[1]); },
                    {{3, 3}, {2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], 1, index, 0.5); }, {{2, 4}});
  const Tensor x = zeros({4}).set_requires_grad();
  const Tensor source = ones({3}).set_requires_grad();
  scatter(x, 0, tensor({1, 3, 1}), source).backward(tensor({1.F, 2.F, 3.F, 4.F}));
  CHECK(x.grad().to_vector() == std::vector<float>{1, 0, 3, 0});
  CHECK(source.grad().to_vector() == std::vector<float>{0, 4, 2});
}

TEST_CASE("index_select, index_add and masked_select are differentiable", "[index]") {
  const Tensor index = tensor({2, 0, 2});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_select(t[0], 0, index); }, {{3, 2}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_select(t[0], -2, index); }, {{2, 3, 2}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_add(t[0], 1, index, t[1]); },
                    {{2, 3}, {2, 3}});
  check_derivatives(
      [](const std::vector<Tensor>& t) {
        return masked_select(t[0], tensor({{true, false}, {true, true}}));
      },
      {{2, 2}});
  check_derivatives(
      [](const std::vector<Tensor>& t) {
        return masked_select(t[0], tensor({{true}, {false}, {true}}));
      },
      {{1, 2}});
  const Tensor x = random64({2, 3, 2, 2}).to(MemoryFormat::channels_last).set_requires_grad();
  sum(index_select(x, 1, index)).backward();
  CHECK(x.grad().is_contiguous(MemoryFormat::channels_last));
  CHECK(select(select(select(x.grad(), 0, 0), 1, 0), 1, 0).to_vector() == std::vector<float>{1, 0, 2});
}

TEST_CASE("embedding is differentiable but for the padding row", "[index]") {
  const Tensor index = tensor({{0, 2}, {2, 1}});
  check_derivatives([&](const std::vector<Tensor>& t) { return embedding(index, t[0]); }, {{3, 2}});
  // The padding row has no gradient by decree, so that finite differences must not move it.
  for (const int64_t padding_idx : {0, 2, -1})
    check_derivatives(
        [&](const std::vector<Tensor>& t) {
          const Tensor fixed = tensor({{0.5, -1.5}}).to(float64);
          const Tensor weight = padding_idx == 0 ? cat({fixed, t[0]}, 0) : cat({t[0], fixed}, 0);
          return embedding(index, weight, {.padding_idx = padding_idx});
        },
        {{2, 2}});
  for (const test::Json& entry : test::fixture_cases("layers", "embedding")) {
    CAPTURE(entry.at("name").get<std::string>());
    const auto inputs = test::tensors_from(entry.at("inputs"));
    const test::Json& padding = entry.at("options").at("padding_idx");
    EmbeddingOptions options;
    if (!padding.is_null()) options.padding_idx = padding.get<int64_t>();
    const Tensor weight = inputs.at("weight").set_requires_grad();
    // A strided index must be read as it is.
    const Tensor x = inputs.at("x");
    const auto strided = [](const Tensor& t) {
      return select(expand(unsqueeze(t, -1), {-1, -1, 2}).contiguous(), -1, 1);
    };
    const Tensor dy = test::tensor_from(entry.at("grad_output"));
    embedding(x.rank() == 2 ? strided(x) : x, weight, options).backward(dy);
    CHECK(test::relative_error(weight.grad(), test::tensor_from(entry.at("grads").at("weight"))) < 1e-14);
  }
  CHECK_THROWS_WITH(embedding(index, random64({3, 2}), {.padding_idx = 3}),
                    "embedding: padding_idx 3 is outside [-3, 3)");
  // The gradient's gradient: nothing flows through the padding row.
  const auto f = [&](const std::vector<Tensor>& t) {
    return t[0] * embedding(index, t[1], {.padding_idx = 2});
  };
  const Tensor w = random64({3, 2});
  const Tensor scale = random64({2, 2, 2}).set_requires_grad();
  const Tensor weight = w.set_requires_grad();
  sum(f({scale, weight})).backward();
  CHECK(select(weight.grad(), 0, 2).to_vector() == std::vector<float>{0, 0});
  CHECK(select(weight.grad(), 0, 0).to_vector() == select(select(scale, 0, 0), 0, 0).to_vector());
}
