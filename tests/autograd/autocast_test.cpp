#include "pleat/autograd/autocast.h"

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

/// Half the distance of neighbours, relative: the largest error of one rounding.
double unit_roundoff(DType dtype) { return dtype == float16 ? std::exp2(-11) : std::exp2(-8); }

Tensor positive(const Shape& shape, DType dtype = float32) { return rand(shape).to(dtype) + 0.5; }

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const std::vector<Tensor>&)> f;
};

std::vector<Case> in_half() {
  using Args = const std::vector<Tensor>&;
  return {
      {"conv1d", {{2, 2, 6}, {3, 2, 3}, {3}}, [](Args t) { return conv1d(t[0], t[1], t[2]); }},
      {"conv2d", {{2, 2, 5, 5}, {3, 2, 3, 3}, {3}}, [](Args t) { return conv2d(t[0], t[1], t[2]); }},
      {"conv2d, one image", {{2, 5, 5}, {3, 2, 3, 3}}, [](Args t) { return conv2d(t[0], t[1]); }},
      {"conv3d", {{1, 2, 4, 4, 4}, {3, 2, 3, 3, 3}}, [](Args t) { return conv3d(t[0], t[1]); }},
      {"conv_transpose1d",
       {{2, 2, 4}, {2, 3, 3}, {3}},
       [](Args t) { return conv_transpose1d(t[0], t[1], t[2]); }},
      {"conv_transpose2d",
       {{2, 2, 4, 4}, {2, 3, 3, 3}, {3}},
       [](Args t) { return conv_transpose2d(t[0], t[1], t[2]); }},
      {"conv_transpose3d",
       {{1, 2, 3, 3, 3}, {2, 3, 2, 2, 2}, {3}},
       [](Args t) { return conv_transpose3d(t[0], t[1], t[2]); }},
      {"linear", {{4, 5}, {3, 5}, {3}}, [](Args t) { return linear(t[0], t[1], t[2]); }},
      {"matmul", {{4, 5}, {5, 3}}, [](Args t) { return matmul(t[0], t[1]); }},
      {"matmul of a batch", {{2, 4, 5}, {2, 5, 3}}, [](Args t) { return matmul(t[0], t[1]); }},
      {"addmm", {{3}, {4, 5}, {5, 3}}, [](Args t) { return addmm(t[0], t[1], t[2]); }},
      {"einsum", {{4, 5, 2}, {5, 3}}, [](Args t) { return einsum("ijk,jl->il", t); }},
      {"prelu", {{2, 3, 4}, {3}}, [](Args t) { return prelu(-t[0], t[1]); }},
  };
}

std::vector<Case> in_float32() {
  using Args = const std::vector<Tensor>&;
  using Unary = Tensor (*)(const Tensor&);
  std::vector<Case> cases;
  for (const auto& [name, f] : std::vector<std::pair<std::string, Unary>>{{"exp", exp},
                                                                          {"expm1", expm1},
                                                                          {"log", log},
                                                                          {"log1p", log1p},
                                                                          {"log2", log2},
                                                                          {"log10", log10},
                                                                          {"rsqrt", rsqrt},
                                                                          {"reciprocal", reciprocal},
                                                                          {"tan", tan},
                                                                          {"asin", asin},
                                                                          {"acos", acos},
                                                                          {"sinh", sinh},
                                                                          {"cosh", cosh}})
    cases.push_back({name, {{2, 3}}, [function = f](Args t) { return function(t[0]); }});
  const std::vector<Case> others = {
      {"softplus", {{4}}, [](Args t) { return softplus(t[0]); }},
      {"pow, number", {{4}}, [](Args t) { return pow(t[0], 3); }},
      {"pow, tensor", {{4}, {4}}, [](Args t) { return pow(t[0], t[1]); }},
      {"pow of a number", {{4}}, [](Args t) { return pow(2.3, t[0]); }},
      {"number / x", {{4}}, [](Args t) { return 1 / t[0]; }},
      {"sum", {{2, 3}}, [](Args t) { return sum(t[0], 1); }},
      {"mean", {{2, 3}}, [](Args t) { return mean(t[0]); }},
      {"prod", {{2, 3}}, [](Args t) { return prod(t[0], 0); }},
      {"var", {{2, 3}}, [](Args t) { return var(t[0], 1); }},
      {"stddev", {{2, 3}}, [](Args t) { return stddev(t[0], 1); }},
      {"var_mean", {{2, 3}}, [](Args t) { return var_mean(t[0], 1).mean; }},
      {"norm", {{2, 3}}, [](Args t) { return norm(t[0]); }},
      {"logsumexp", {{2, 3}}, [](Args t) { return logsumexp(t[0], 1); }},
      {"cumsum", {{2, 3}}, [](Args t) { return cumsum(t[0], 1); }},
      {"cumprod", {{2, 3}}, [](Args t) { return cumprod(t[0], 1); }},
      {"softmax", {{2, 3}}, [](Args t) { return softmax(t[0], 1); }},
      {"log_softmax", {{2, 3}}, [](Args t) { return log_softmax(t[0], 1); }},
      {"group_norm",
       {{2, 4, 3}, {4}, {4}},
       [](Args t) { return group_norm(t[0], t[1], t[2], {.num_groups = 2}); }},
      {"layer_norm",
       {{2, 4}, {4}, {4}},
       [](Args t) { return layer_norm(t[0], t[1], t[2], {.normalized_shape = {4}}); }},
      {"rms_norm", {{2, 4}, {4}}, [](Args t) { return rms_norm(t[0], t[1], {.normalized_shape = {4}}); }},
      {"normalize", {{2, 3}}, [](Args t) { return normalize(t[0]); }},
      {"cosine_similarity", {{2, 3}, {2, 3}}, [](Args t) { return cosine_similarity(t[0], t[1]); }},
      {"pairwise_distance", {{2, 3}, {2, 3}}, [](Args t) { return pairwise_distance(t[0], t[1]); }},
      {"cross_entropy",
       {{2, 3}},
       [](Args t) {
         return cross_entropy(t[0], tensor({0, 2}));
       }},
      {"cross_entropy, probabilities", {{2, 3}, {2, 3}}, [](Args t) { return cross_entropy(t[0], t[1]); }},
      {"nll_loss",
       {{2, 3}},
       [](Args t) {
         return nll_loss(t[0], tensor({0, 2}));
       }},
      {"mse_loss", {{4}, {4}}, [](Args t) { return mse_loss(t[0], t[1]); }},
      {"l1_loss", {{4}, {4}}, [](Args t) { return l1_loss(t[0], t[1]); }},
      {"smooth_l1_loss", {{4}, {4}}, [](Args t) { return smooth_l1_loss(t[0], t[1]); }},
      {"huber_loss", {{4}, {4}}, [](Args t) { return huber_loss(t[0], t[1]); }},
      {"bce_with_logits", {{4}, {4}}, [](Args t) { return bce_with_logits(t[0], t[1]); }},
      {"binary_cross_entropy", {{4}, {4}}, [](Args t) { return binary_cross_entropy(t[0], t[1]); }},
      {"gaussian_nll_loss",
       {{4}, {4}},
       [](Args t) { return gaussian_nll_loss(t[0], t[1], ones({4}).to(t[0].dtype())); }},
      {"poisson_nll_loss", {{4}, {4}}, [](Args t) { return poisson_nll_loss(t[0], t[1]); }},
      {"sigmoid_focal_loss", {{4}, {4}}, [](Args t) { return sigmoid_focal_loss(t[0], t[1]); }},
      {"dice_loss", {{2, 4}, {2, 4}}, [](Args t) { return dice_loss(t[0], t[1]); }},
      {"margin_ranking_loss", {{4}, {4}, {4}}, [](Args t) { return margin_ranking_loss(t[0], t[1], t[2]); }},
      {"cosine_embedding_loss",
       {{4, 2}, {4, 2}},
       [](Args t) { return cosine_embedding_loss(t[0], t[1], ones({4})); }},
      {"hinge_embedding_loss", {{4}, {4}}, [](Args t) { return hinge_embedding_loss(t[0], t[1]); }},
      {"soft_margin_loss", {{4}, {4}}, [](Args t) { return soft_margin_loss(t[0], t[1]); }},
      {"multilabel_soft_margin_loss",
       {{2, 4}, {2, 4}},
       [](Args t) { return multilabel_soft_margin_loss(t[0], t[1]); }},
      {"multi_margin_loss",
       {{2, 3}},
       [](Args t) {
         return multi_margin_loss(t[0], tensor({0, 2}));
       }},
      {"triplet_margin_loss",
       {{2, 3}, {2, 3}, {2, 3}},
       [](Args t) { return triplet_margin_loss(t[0], t[1], t[2]); }},
      {"kl_div", {{4}, {4}}, [](Args t) { return kl_div(t[0], t[1]); }},
      {"kl_div, log_target", {{4}, {4}}, [](Args t) { return kl_div(t[0], t[1], {.log_target = true}); }},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

std::vector<Tensor> inputs_of(const Case& one, DType dtype) {
  manual_seed(7);
  std::vector<Tensor> inputs;
  for (const Shape& shape : one.shapes) inputs.push_back(positive(shape, dtype).set_requires_grad());
  return inputs;
}

/// The gradients of sum(f(inputs) c) with a positive c.
Grads gradients(const Case& one, const std::vector<Tensor>& inputs, std::optional<DType> half) {
  Tensor y;
  {
    const Autocast guard{half.value_or(float16), {.enabled = half.has_value()}};
    y = one.f(inputs);
  }
  manual_seed(9);
  return grad({sum(y.to(float32) * positive(y.shape()))}, inputs);
}

}  // namespace

TEST_CASE("under autocast products are computed in the half type", "[autocast]") {
  for (const DType half : {float16, bfloat16})
    for (const Case& one : in_half()) {
      CAPTURE(one.name, name(half));
      const std::vector<Tensor> inputs = inputs_of(one, float32);
      const Tensor exact = one.f(inputs);
      CHECK(exact.dtype() == float32);
      const Autocast guard{half};
      const Tensor y = one.f(inputs);
      CHECK(y.dtype() == half);
      // Nothing cancels: each input and each result was rounded once, and einsum and a transposed
      // convolution's bias round in between.
      CHECK(test::relative_error(y, exact) < 5 * unit_roundoff(half));
      CHECK(test::relative_error(y, exact) > unit_roundoff(half) / 100);
    }
}

TEST_CASE("gradients through autocast arrive in float32 and are those of float32 but for roundings",
          "[autocast]") {
  for (const DType half : {float16, bfloat16})
    for (const Case& one : in_half()) {
      CAPTURE(one.name, name(half));
      const std::vector<Tensor> inputs = inputs_of(one, float32);
      const Grads exact = gradients(one, inputs, {});
      const Grads rounded = gradients(one, inputs, half);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        CHECK(rounded[i].dtype() == float32);
        // The gradient that arrives, the other factor, the product and what is passed on.
        CHECK(test::relative_error(rounded[i], exact[i]) < 5 * unit_roundoff(half));
      }
    }
}

TEST_CASE("under autocast what loses much in half types is computed in float32", "[autocast]") {
  for (const DType half : {float16, bfloat16})
    for (const Case& one : in_float32()) {
      CAPTURE(one.name, name(half));
      std::vector<Tensor> inputs;
      for (const Tensor& input : inputs_of(one, half)) inputs.push_back(input * 0.5);
      CHECK(one.f(inputs).dtype() == half);
      std::vector<Tensor> wide;
      for (const Tensor& input : inputs) wide.push_back(input.to(float32));
      const Autocast guard{half};
      const Tensor y = one.f(inputs);
      CHECK(y.dtype() == float32);
      CHECK((y.to_vector() == one.f(wide).to_vector()));
      const Grads found = grad({sum(y)}, {inputs[0]});
      CHECK(found[0].dtype() == half);
    }
}

TEST_CASE("under autocast the rest follows the usual promotion", "[autocast]") {
  const Autocast guard{bfloat16};
  const Tensor half = positive({2, 3, 4, 4}, bfloat16);
  const Tensor full = positive({2, 3, 4, 4});
  CHECK(relu(half).dtype() == bfloat16);
  CHECK(relu(full).dtype() == float32);
  CHECK((half + full).dtype() == float32);
  CHECK((half * 2.5).dtype() == bfloat16);
  CHECK(cat({half, full}, 0).dtype() == float32);
  CHECK(max_pool(half, {.kernel_size = 2}).dtype() == bfloat16);
  CHECK(sigmoid(half).dtype() == bfloat16);

  SECTION("batch_norm keeps its input's type, statistics in float32") {
    const Tensor mean = zeros({3});
    const Tensor var = ones({3});
    const Tensor weight = ones({3}).set_requires_grad();
    const Tensor y = batch_norm(half, weight, zeros({3}), mean, var, {.training = true});
    CHECK(y.dtype() == bfloat16);
    CHECK(mean.to_vector()[0] == Approx(0.1 * pleat::mean(select(half, 1, 0)).item()).epsilon(1e-5));
    sum(y * full).backward();
    CHECK(weight.grad().dtype() == float32);
  }

  SECTION("float64 and integers stay as they are") {
    const Tensor a = positive({2, 2}, float64);
    CHECK(matmul(a, a).dtype() == float64);
    CHECK_THROWS_AS(matmul(a, positive({2, 2})), DTypeError);
    CHECK(exp(a).dtype() == float64);
    CHECK(matmul(tensor({{1, 2}}), tensor({{1}, {2}})).dtype() == int64);
    CHECK(gradcheck([](const std::vector<Tensor>& t) { return softmax(linear(t[0], t[1]), 1); },
                    {randn({2, 3}, {.dtype = float64}), randn({4, 3}, {.dtype = float64})}));
  }
}

TEST_CASE("autocast scopes nest, end with an exception, and belong to their thread", "[autocast]") {
  const Tensor a = positive({2, 2});
  CHECK_FALSE(autocast_dtype().has_value());
  {
    const Autocast outer{float16};
    {
      const Autocast inner{bfloat16};
      CHECK(matmul(a, a).dtype() == bfloat16);
      {
        const Autocast off{float16, {.enabled = false}};
        CHECK_FALSE(autocast_dtype().has_value());
        CHECK(matmul(a, a).dtype() == float32);
        CHECK(exp(a.to(float16)).dtype() == float16);
      }
      CHECK(autocast_dtype() == bfloat16);
    }
    CHECK(matmul(a, a).dtype() == float16);
    CHECK_THROWS_AS(matmul(a, positive({3, 2})), ShapeError);
    std::optional<DType> elsewhere = float16;
    std::thread([&] { elsewhere = autocast_dtype(); }).join();
    CHECK_FALSE(elsewhere.has_value());
  }
  CHECK(matmul(a, a).dtype() == float32);
  CHECK_THROWS_WITH(Autocast{float32}, "Autocast: the type must be float16 or bfloat16, got float32");
  CHECK_FALSE(autocast_dtype().has_value());
}

TEST_CASE("autocast casts a parameter once in the outermost scope, until it changes", "[autocast]") {
  const Tensor w = positive({3, 3}).set_requires_grad();
  const Tensor x = positive({2, 3});
  const auto cast = [](const Tensor& t) { return autocast_to_half(t)[0]; };
  const auto id = [&](const Tensor& t) { return cast(t).impl().id; };
  optim::SGD sgd{{w}, {.lr = 0.5}};

  {
    const Autocast guard{bfloat16};
    const uint64_t first = id(w);
    CHECK(id(w) == first);
    {
      const Autocast nested{bfloat16};
      CHECK(id(w) == first);
      const Autocast other{float16};
      CHECK(cast(w).dtype() == float16);
    }
    CHECK(id(w) == first);
    CHECK(id(x) != id(x));
    {
      // A cast that was not recorded must not be found where gradients are wanted, nor the other way round.
      const NoGrad off;
      CHECK_FALSE(cast(w).requires_grad());
    }
    CHECK(cast(w).requires_grad());

    // An optimiser's step.
    const uint64_t before = id(w);
    sum(linear(x, w)).backward();
    CHECK(id(w) == before);
    sgd.step();
    CHECK(id(w) != before);
    CHECK((cast(w).to_vector() == w.to(bfloat16).to_vector()));

    // Other elements under the same handle.
    const uint64_t stepped = id(w);
    w.set_data(positive({3, 3}));
    CHECK(id(w) != stepped);

    const Autocast uncached{bfloat16, {.cache_weights = false}};
    CHECK(id(w) != id(w));
  }
  uint64_t first = 0;
  for (int scope = 0; scope < 2; ++scope) {
    const Autocast guard{bfloat16};
    CHECK(id(w) != first);
    first = id(w);
  }
}

TEST_CASE("autocast casts together what an earlier scope asked for, as it is now", "[autocast]") {
  manual_seed(11);
  const Tensor x = randn({3, 4});
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(randn({4, 4}).set_requires_grad());
  // Products with the weights of these numbers; gradients, undefined where none arrived.
  const auto step = [&](const std::vector<std::size_t>& used, bool cache, bool create_graph = false) {
    for (const Tensor& w : weights) w.set_grad({});
    Tensor y = x;
    {
      const Autocast guard(bfloat16, {.cache_weights = cache});
      for (const std::size_t i : used) y = matmul(y, weights[i]);
    }
    backward({sum(y.to(float32))}, {}, {.create_graph = create_graph});
    std::vector<std::vector<float>> numbers{y.detach().to_vector()};
    for (const Tensor& w : weights)
      numbers.push_back(w.grad().defined() ? w.grad().to_vector() : std::vector<float>());
    return numbers;
  };
  step({0, 1, 2}, true);
  // The same again; other values; another order; fewer, more and other weights; a graph of gradients.
  CHECK(step({0, 1, 2}, true) == step({0, 1, 2}, false));
  {
    const NoGrad off;
    weights[1] *= 2;
    weights[2].set_data(randn({4, 4}));
  }
  CHECK(step({0, 1, 2}, true) == step({0, 1, 2}, false));
  CHECK(step({0, 2, 1}, true) == step({0, 2, 1}, false));
  CHECK(step({0, 1}, true) == step({0, 1}, false));
  CHECK(step({0, 3, 1}, true) == step({0, 3, 1}, false));
  CHECK(step({3}, true) == step({3}, false));
  CHECK(step({0, 3, 1}, true, true) == step({0, 3, 1}, false));
  weights[3].set_requires_grad(false);
  CHECK(step({0, 3, 1}, true) == step({0, 3, 1}, false));
  // Changed between two uses of one scope.
  const Autocast guard(bfloat16);
  CHECK(matmul(x, weights[0]).to_vector() == matmul(x.to(bfloat16), weights[0].to(bfloat16)).to_vector());
  {
    const NoGrad off;
    weights[1] *= 3;
  }
  CHECK(matmul(x, weights[1]).to_vector() == matmul(x.to(bfloat16), weights[1].to(bfloat16)).to_vector());
  // A tensor that is gone is forgotten.
  weights.erase(weights.begin() + 1);
  CHECK_NOTHROW(matmul(x, weights[0]));
}

TEST_CASE("two losses of one autocast scope have a backward each", "[autocast]") {
  const Tensor w = positive({3, 3}).set_requires_grad();
  const Tensor a = positive({2, 3});
  const Tensor b = positive({2, 3});
  const auto loss = [&](const Tensor& x) { return sum(linear(x, w)); };
  Tensor together;
  {
    const Autocast guard{bfloat16};
    together = grad({loss(a)}, {w})[0] + grad({loss(b)}, {w})[0];
    const Tensor first = loss(a);
    const Tensor second = loss(b);
    first.backward();
    second.backward();
  }
  CHECK((w.grad().to_vector() == together.to_vector()));
}

TEST_CASE("backward is the same inside and outside of autocast, and through checkpoints", "[autocast]") {
  manual_seed(4);
  const Tensor w = (randn({6, 6}) * 0.5).set_requires_grad();
  const Tensor x = randn({4, 6});
  const auto block = [&](const Tensor& t) { return exp(matmul(tanh(linear(t, w)), w) * 0.1); };
  std::vector<std::vector<double>> results;
  for (const bool checkpointed : {false, true})
    for (const bool inside : {false, true}) {
      w.set_grad({});
      std::optional<Autocast> guard;
      guard.emplace(bfloat16);
      const Tensor h = block(x);
      const Tensor y = checkpointed ? checkpoint(std::function<Tensor(const Tensor&)>(block), h) : block(h);
      CHECK(y.dtype() == float32);
      const Tensor loss = mean(y);
      if (!inside) guard.reset();
      loss.backward();
      results.push_back(w.grad().to_vector<double>());
    }
  CHECK((results[1] == results[0]));
  CHECK((results[3] == results[2]));
  // Without checkpoints the gradients of w's four uses are added in bfloat16, which its one cast has; with
  // them two pairs are, and these in float32.
  CHECK(test::relative_error(results[2], results[0]) < 4 * unit_roundoff(bfloat16));
}
