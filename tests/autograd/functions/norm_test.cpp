#include "pleat/autograd/functions/norm.h"

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/create.h"
#include "pleat/core/random.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/layouts.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

Tensor noise(const Shape& shape) { return randn(shape, {.dtype = float64}); }

/// Inputs of one shape in every layout.
std::vector<Tensor> layouts(const Shape& shape) {
  std::vector<Tensor> result;
  for (const std::string& layout : test::layouts())
    if (shape.size() > 2 || layout == "contiguous") result.push_back(test::laid_out(noise(shape), layout));
  return result;
}

}  // namespace

TEST_CASE("batch_norm: gradients, and gradients of gradients", "[batch_norm]") {
  manual_seed(3);
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 2, 3}, Shape{2, 3, 2, 2}, Shape{2, 2, 1, 2, 2}})
    for (const Tensor& x : layouts(shape))
      for (const bool training : {true, false}) {
        CAPTURE(x.describe(), training);
        const Tensor weight = noise({shape[1]}), bias = noise({shape[1]});
        const Tensor mean = noise({shape[1]}), var = rand({shape[1]}, {.dtype = float64}) + 0.5;
        const BatchNormOptions options{.training = training, .eps = 1e-2};
        const auto with = [&](const std::vector<Tensor>& t) {
          return batch_norm(t[0], t[1], t[2], mean.clone(), var.clone(), options);
        };
        CHECK(gradcheck(with, {x, weight, bias}));
        CHECK(gradgradcheck(with, {x, weight, bias}));
        const auto without = [&](const std::vector<Tensor>& t) {
          return batch_norm(t[0], {}, {}, mean.clone(), var.clone(), options);
        };
        CHECK(gradcheck(without, {x}));
        CHECK(gradgradcheck(without, {x}));
      }
}

TEST_CASE("batch_norm: the recorded gradient is the fused one", "[batch_norm]") {
  manual_seed(4);
  const Tensor x = noise({3, 4, 5, 2});
  const Tensor weight = noise({4}), bias = noise({4});
  for (const Tensor& t : {x, weight, bias}) t.set_requires_grad();
  for (const bool training : {true, false}) {
    const Tensor y = batch_norm(x, weight, bias, zeros({4}, {.dtype = float64}),
                                ones({4}, {.dtype = float64}), {.training = training});
    const Tensor dy = noise(x.shape());
    const Grads fused = grad({y}, {x, weight, bias}, {dy}, {.retain_graph = true});
    const Grads recorded = grad({y}, {x, weight, bias}, {dy}, {.create_graph = true});
    for (std::size_t i = 0; i < 3; ++i) CHECK(test::relative_error(recorded[i], fused[i]) < 1e-12);
  }
}

TEST_CASE("batch_norm: gradients keep format and type", "[batch_norm]") {
  const Tensor x = randn({2, 3, 4, 5}).to(MemoryFormat::channels_last).to(bfloat16).detach();
  const Tensor weight = ones({3});
  x.set_requires_grad();
  weight.set_requires_grad();
  const Tensor y = batch_norm(x, weight, {}, {}, {}, {.training = true});
  CHECK(y.dtype() == bfloat16);
  CHECK(y.memory_format() == MemoryFormat::channels_last);
  sum(y * y).backward();
  CHECK(x.grad().memory_format() == MemoryFormat::channels_last);
  CHECK(x.grad().dtype() == bfloat16);
  CHECK(weight.grad().dtype() == float32);
}

TEST_CASE("batch_norm: evaluation saves copies of the running statistics", "[batch_norm]") {
  const Tensor x = randn({4, 2});
  x.set_requires_grad();
  const Tensor mean = zeros({2}), var = ones({2});
  const Tensor y = batch_norm(x, {}, {}, mean, var, {.eps = 1e-5});
  batch_norm(x, {}, {}, mean, var, {.training = true});
  sum(y).backward();
  CHECK(test::relative_error(x.grad(), std::vector<double>(8, 1 / std::sqrt(1 + 1e-5))) < 1e-6);
}

TEST_CASE("batch_norm: an empty batch has empty gradients", "[batch_norm]") {
  const Tensor x = zeros({0, 3, 2, 2});
  const Tensor weight = ones({3});
  x.set_requires_grad();
  weight.set_requires_grad();
  sum(batch_norm(x, weight, {}, {}, {}, {.training = true})).backward();
  CHECK(x.grad().shape() == Shape{0, 3, 2, 2});
  CHECK(weight.grad().to_vector() == std::vector<float>(3, 0));
}
