#include "pleat/nn/loss.h"

#include <cmath>

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/loss/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

Tensor random(Shape shape, uint64_t seed = 17) {
  Generator generator(seed);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_normal_(x, 0, 1.5, generator);
  return x;
}

Tensor positive(Shape shape, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_uniform_(x, 0.1, 1, generator);
  return x;
}

Reduction reduction_of(const test::Json& options) {
  const std::string name = options["reduction"];
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  return name == "mean" ? Reduction::mean : Reduction::batch_mean;
}

using Inputs = std::map<std::string, Tensor>;

Tensor get(const Inputs& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor() : found->second;
}

/// The loss of a recorded case.
Tensor loss_of(const std::string& op, const Inputs& in, const test::Json& options) {
  const Reduction reduction = reduction_of(options);
  const Tensor x = get(in, "input");
  const Tensor t = get(in, "target");
  if (op == "cross_entropy")
    return cross_entropy(x, t,
                         {.weight = get(in, "weight"),
                          .ignore_index = options["ignore_index"],
                          .label_smoothing = options["label_smoothing"],
                          .reduction = reduction});
  if (op == "nll_loss")
    return nll_loss(
        x, t, {.weight = get(in, "weight"), .ignore_index = options["ignore_index"], .reduction = reduction});
  if (op == "mse_loss") return mse_loss(x, t, {reduction});
  if (op == "l1_loss") return l1_loss(x, t, {reduction});
  if (op == "smooth_l1_loss") return smooth_l1_loss(x, t, {.beta = options["beta"], .reduction = reduction});
  if (op == "huber_loss") return huber_loss(x, t, {.delta = options["delta"], .reduction = reduction});
  if (op == "kl_div") return kl_div(x, t, {.log_target = options["log_target"], .reduction = reduction});
  if (op == "binary_cross_entropy")
    return binary_cross_entropy(x, t, {.weight = get(in, "weight"), .reduction = reduction});
  if (op == "gaussian_nll_loss")
    return gaussian_nll_loss(x, t, get(in, "var"),
                             {.full = options["full"], .eps = options["eps"], .reduction = reduction});
  if (op == "poisson_nll_loss")
    return poisson_nll_loss(x, t,
                            {.log_input = options["log_input"],
                             .full = options["full"],
                             .eps = options["eps"],
                             .reduction = reduction});
  if (op == "sigmoid_focal_loss")
    return sigmoid_focal_loss(x, t,
                              {.alpha = options["alpha"], .gamma = options["gamma"], .reduction = reduction});
  if (op == "dice_loss") return dice_loss(x, t, {.smooth = options["smooth"], .reduction = reduction});
  if (op == "margin_ranking_loss")
    return margin_ranking_loss(get(in, "input1"), get(in, "input2"), t,
                               {.margin = options["margin"], .reduction = reduction});
  if (op == "cosine_embedding_loss")
    return cosine_embedding_loss(get(in, "input1"), get(in, "input2"), t,
                                 {.margin = options["margin"], .reduction = reduction});
  if (op == "hinge_embedding_loss")
    return hinge_embedding_loss(x, t, {.margin = options["margin"], .reduction = reduction});
  if (op == "soft_margin_loss") return soft_margin_loss(x, t, {reduction});
  if (op == "multilabel_soft_margin_loss")
    return multilabel_soft_margin_loss(x, t, {.weight = get(in, "weight"), .reduction = reduction});
  if (op == "multi_margin_loss")
    return multi_margin_loss(x, t,
                             {.p = options["p"],
                              .margin = options["margin"],
                              .weight = get(in, "weight"),
                              .reduction = reduction});
  if (op == "triplet_margin_loss")
    return triplet_margin_loss(get(in, "anchor"), get(in, "positive"), get(in, "negative"),
                               {.margin = options["margin"],
                                .p = options["p"],
                                .eps = options["eps"],
                                .swap = options["swap"],
                                .reduction = reduction});
  return bce_with_logits(
      x, t, {.weight = get(in, "weight"), .pos_weight = get(in, "pos_weight"), .reduction = reduction});
}

/// ||a - b|| / ||b||, or ||a|| where b is 0.
double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const double size = norm(b).item<double>();
  const double apart = norm(subtract(a, b)).item<double>();
  return size > 0 ? apart / size : apart;
}

const std::vector<std::string> recorded = {"cross_entropy",
                                           "nll_loss",
                                           "mse_loss",
                                           "l1_loss",
                                           "smooth_l1_loss",
                                           "huber_loss",
                                           "kl_div",
                                           "binary_cross_entropy_with_logits",
                                           "binary_cross_entropy",
                                           "gaussian_nll_loss",
                                           "poisson_nll_loss",
                                           "sigmoid_focal_loss",
                                           "dice_loss",
                                           "margin_ranking_loss",
                                           "cosine_embedding_loss",
                                           "hinge_embedding_loss",
                                           "soft_margin_loss",
                                           "multilabel_soft_margin_loss",
                                           "multi_margin_loss",
                                           "triplet_margin_loss"};

}  // namespace

TEST_CASE("losses and their gradients agree with PyTorch") {
  for (const std::string& op : recorded)
    for (const test::Json& wanted : test::fixture_cases("losses", op)) {
      const Tensor y_right = test::tensor_from(wanted["outputs"]["y"]);
      const Tensor dy = test::tensor_from(wanted["grad_output"]);
      const Inputs grads = test::tensors_from(wanted["grads"]);
      for (const DType dtype : {float64, float32})
        for (const bool channels_last : {false, true}) {
          INFO(wanted["name"].get<std::string>()
               << " " << name(dtype) << (channels_last ? " channels_last" : ""));
          Inputs inputs = test::tensors_from(wanted["inputs"]);
          if (channels_last && (!inputs.contains("input") || inputs.at("input").rank() < 3)) continue;
          for (auto& [name, tensor] : inputs) {
            if (!is_floating(tensor.dtype())) continue;
            tensor = ops::cast(tensor, dtype);
            if (channels_last && tensor.rank() >= 3)
              tensor = ops::to_format(tensor, MemoryFormat::channels_last);
            if (grads.contains(name)) tensor.set_requires_grad();
          }
          const Tensor y = loss_of(op, inputs, wanted["options"]);
          y.backward(ops::cast(dy, dtype));
          const double tolerance = dtype == float64 ? 1e-12 : 1e-5;
          CHECK(y.dtype() == dtype);
          CHECK(largest_difference(y.detach(), y_right) < tolerance);
          for (const auto& [name, right] : grads) {
            INFO("gradient of " << name);
            CHECK(largest_difference(inputs.at(name).grad(), right) < tolerance);
          }
        }
    }
}

TEST_CASE("binary_cross_entropy bounds logarithms, and keeps NaN") {
  const Tensor p = tensor({0.0, 1.0, 0.0, 1.0, std::nan(""), 1.5}).set_requires_grad();
  const Tensor t = tensor({0.0, 1.0, 1.0, 0.0, 0.5, 0.5});
  const Tensor y = binary_cross_entropy(p, t, {.reduction = Reduction::none});
  const auto losses = y.to_vector();
  CHECK(std::vector<float>(losses.begin(), losses.begin() + 4) == std::vector<float>{0, 0, 100, 100});
  CHECK(std::isnan(losses[4]));
  CHECK(std::isnan(losses[5]));
  sum(y).backward();
  for (int i = 0; i < 4; ++i) CHECK(std::isfinite(p.grad().to_vector()[static_cast<std::size_t>(i)]));
}

TEST_CASE("focal losses of certain logits have finite gradients") {
  for (const double gamma : {0.0, 0.5, 1.0, 2.0}) {
    const Tensor x = tensor({-200.0, 200.0, -200.0, 200.0}).set_requires_grad();
    const Tensor t = tensor({0.0, 1.0, 1.0, 0.0});
    const Tensor y = sigmoid_focal_loss(x, t, {.gamma = gamma});
    CHECK(y.to_vector()[0] == 0);
    CHECK(y.to_vector()[2] == Approx(50));
    sum(y).backward();
    for (const float g : x.grad().to_vector()) CHECK(std::isfinite(g));
  }
}

// Of all others tests/op_cases/ has the gradients.
TEST_CASE("gradients of class losses of probabilities and of one sample", "[cpu]") {
  const Tensor image = ops::to_format(random({2, 3, 2, 2}), MemoryFormat::channels_last);
  for (const Tensor& x : {random({4, 3}), transpose(random({3, 4}), 0, 1), image, random({3})})
    for (const Tensor& w : {Tensor(), tensor({0.5, 2.0, 1.5}, float64)})
      for (const double smoothing : {0.0, 0.2})
        for (const Reduction reduction : {Reduction::none, Reduction::mean}) {
          INFO(x.describe() << " smoothing " << smoothing);
          const auto loss = [&](const Tensor& logits, const Tensor& target) {
            return cross_entropy(logits, target,
                                 {.weight = w, .label_smoothing = smoothing, .reduction = reduction});
          };
          const auto probabilities = [&](const std::vector<Tensor>& t) { return loss(t[0], t[1]); };
          const Tensor p = positive(x.shape(), 3);
          CHECK(gradcheck(probabilities, {x, p}));
          CHECK(gradgradcheck(probabilities, {x, p}));
          const auto of_one = [&](const std::vector<Tensor>& t) { return loss(t[0], scalar(2)); };
          if (x.rank() == 1) CHECK((gradcheck(of_one, {x}) && gradgradcheck(of_one, {x})));
        }
}

TEST_CASE("gradients of distance losses of any width", "[cpu]") {
  const Tensor x = random({3, 4}), target = random({3, 4}, 5);
  for (const double width : {0.0, 0.5, 3.0}) {
    const auto smooth = [&](const std::vector<Tensor>& t) {
      return smooth_l1_loss(t[0], t[1], {.beta = width});
    };
    CHECK((gradcheck(smooth, {x, target}) && gradgradcheck(smooth, {x, target})));
    if (width == 0) continue;
    const auto huber = [&](const std::vector<Tensor>& t) { return huber_loss(t[0], t[1], {.delta = width}); };
    CHECK((gradcheck(huber, {x, target}) && gradgradcheck(huber, {x, target})));
  }
}

TEST_CASE("the fused cross_entropy and its backward are those of its formula, on more than one block") {
  for (const Shape& shape : {Shape{300, 70}, Shape{3, 5, 13, 17}, Shape{2, 300, 7}}) {
    const Tensor x = random(shape).set_requires_grad();
    Shape target_shape = shape;
    target_shape.erase(target_shape.begin() + 1);
    std::vector<int64_t> classes(static_cast<std::size_t>(count(target_shape)));
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int64_t>(i) * 31 % shape[1];
    classes[1] = -100;
    const Tensor target = from_vector(classes, target_shape);
    const Tensor y = cross_entropy(x, target, {.label_smoothing = 0.1});
    y.backward();
    const Tensor fused = x.grad();
    x.set_grad({});
    const Tensor own = nll_loss(log_softmax(x, 1) * 0.9, target);
    own.backward();
    const Tensor shares = ops::class_shares(x, target, {}, {.label_smoothing = 1});
    const Tensor smooth = -sum(log_softmax(x, 1) * shares) / static_cast<double>(target.numel() - 1);
    (smooth * 0.1).backward();
    CHECK(y.item() == Approx(own.item() + 0.1 * smooth.item()).epsilon(1e-12));
    CHECK(largest_difference(fused, x.grad()) < 1e-12);
  }
}

TEST_CASE("cross_entropy stands large logits and empty batches") {
  const Tensor x = tensor({{1000.0, -1000.0}, {0.0, 800.0}}).set_requires_grad();
  const Tensor y = cross_entropy(x, tensor({1, 1}), {.reduction = Reduction::none});
  CHECK(y.to_vector() == std::vector<float>{2000, 0});
  sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{1, -1, 0, 0});

  const Tensor none = zeros({0, 3}).set_requires_grad();
  const Tensor no_targets = zeros({0}, {.dtype = int64});
  CHECK(std::isnan(cross_entropy(none, no_targets).item()));
  cross_entropy(none, no_targets, {.reduction = Reduction::sum}).backward();
  CHECK(none.grad().shape() == Shape{0, 3});
  CHECK(std::isnan(cross_entropy(zeros({2, 3}), tensor({-100, -100})).item()));
  CHECK(cross_entropy(zeros({2, 3}), tensor({-100, -100}), {.reduction = Reduction::sum}).item() == 0);
  CHECK(mse_loss(zeros({0, 2}), zeros({0, 2}), {Reduction::sum}).item() == 0);
}

TEST_CASE("losses take half types and integer class indices of any type") {
  const Tensor x = ops::cast(random({4, 3}), float16).set_requires_grad();
  for (const DType dtype : {uint8, int32, int64}) {
    const Tensor y = cross_entropy(x, tensor({0, 1, 2, 1}, dtype));
    CHECK(y.dtype() == float16);
    y.backward();
    CHECK(x.grad().dtype() == float16);
  }
  CHECK(mse_loss(tensor({1, 2}), tensor({2, 4})).item() == 2.5);
  CHECK(mse_loss(tensor({1.0, 2.0}), tensor({2.0, 4.0}), {Reduction::batch_mean}).item() == 2.5);
}

TEST_CASE("bad arguments of losses are explained", "[cpu]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(cross_entropy(x, tensor({0, 3})), IndexError);
  CHECK_THROWS_WITH(
      cross_entropy(x, tensor({0, 3})),
      "cross_entropy: class 3 of target number 1 lies outside [0, 3) (and is not ignore_index, -100); input "
      "[2, 3] float32 cpu");
  CHECK_THROWS_WITH(nll_loss(x, tensor({-1, 0})),
                    Contains("nll_loss: class -1 of target number 0 lies outside [0, 3)"));
  CHECK_THROWS_WITH(
      cross_entropy(x, tensor({0, 1, 2})),
      "cross_entropy: 3 classes of input [2, 3] float32 cpu need class indices of shape [2], got [3] int64 "
      "cpu");
  CHECK_THROWS_AS(cross_entropy(x, tensor({true, false})), DTypeError);
  CHECK_THROWS_AS(cross_entropy(tensor({{1, 2}}), tensor({0})), DTypeError);
  CHECK_THROWS_WITH(cross_entropy(x, zeros({2})), Contains("must have the input's shape"));
  CHECK_THROWS_WITH(cross_entropy(x, tensor({0, 1}), {.weight = ones({2})}),
                    Contains("the weight must be [3], one number for each class, got [2]"));
  CHECK_THROWS_WITH(cross_entropy(x, x, {.weight = ones({2})}), Contains("the weight must be [3]"));
  CHECK_THROWS_WITH(cross_entropy(x, tensor({0, 1}), {.label_smoothing = 1.5}),
                    Contains("label_smoothing must lie in [0, 1], got 1.5"));
  CHECK_THROWS_AS(cross_entropy(scalar(1.0), scalar(0)), ShapeError);
  CHECK_THROWS_WITH(mse_loss(x, zeros({2, 1})),
                    "mse_loss: input and target must have one shape, got [2, 3] float32 cpu "
                    "and [2, 1] float32 cpu; reshape or expand one of them");
  CHECK_THROWS_WITH(kl_div(x, zeros({3})), Contains("kl_div: input and target must have one shape"));
  CHECK_THROWS_WITH(bce_with_logits(x, zeros({3})),
                    Contains("bce_with_logits: input and target must have one shape"));
  CHECK_THROWS_WITH(bce_with_logits(x, x, {.weight = ones({2})}), Contains("bce_with_logits"));
  CHECK_THROWS_WITH(bce_with_logits(x, x, {.pos_weight = ones({4, 2, 3})}),
                    Contains("does not broadcast to the input"));
  CHECK_THROWS_WITH(smooth_l1_loss(x, x, {.beta = -1}),
                    Contains("beta must be at least 0 and finite, got -1"));
  CHECK_THROWS_WITH(huber_loss(x, x, {.delta = 0}), Contains("delta must be above 0 and finite, got 0"));
}

TEST_CASE("cross_entropy gives the same bits for any number of threads") {
  const int before = num_threads();
  const auto results = [&](int threads) {
    set_num_threads(threads);
    std::vector<std::vector<float>> values;
    for (const Shape& shape : {Shape{2000, 50}, Shape{4, 5, 60, 50}}) {
      const Tensor x = ops::cast(random(shape), float32).set_requires_grad();
      Shape target_shape = shape;
      target_shape.erase(target_shape.begin() + 1);
      const Tensor y = cross_entropy(x, zeros(target_shape, {.dtype = int64}), {.label_smoothing = 0.1});
      y.backward();
      values.push_back(y.to_vector());
      values.push_back(x.grad().to_vector());
    }
    return values;
  };
  const auto one = results(1);
  CHECK(results(2) == one);
  CHECK(results(3) == one);
  set_num_threads(before);
}

TEST_CASE("on the CPU wrong class indices are an error even unchecked", "[cpu]") {
  CHECK_THROWS_AS(cross_entropy(zeros({2, 3}), tensor({0, 3}), {.check_target = false}), IndexError);
}

TEST_CASE("cuda: an unchecked wrong class index counts for nothing", "[cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu("cuda");
  const Tensor logits = randn({3, 4}).to(gpu).set_requires_grad();
  const Tensor wrong = tensor({1, 7, 2}).to(gpu);
  CHECK_THROWS_AS(cross_entropy(logits, wrong), IndexError);
  const Tensor loss = cross_entropy(logits, wrong, {.check_target = false});
  CHECK(loss.item() == Approx(cross_entropy(logits, tensor({1, -100, 2}).to(gpu)).item()));
  loss.backward();
  for (std::size_t c = 4; c < 8; ++c) CHECK(logits.grad().to_vector()[c] == 0);
}

TEST_CASE("a mean of squares has room where the squares have none") {
  const Tensor x = tensor({300.0, 10.0, 20.0, -30.0}, float16), zero = zeros_like(x);
  CHECK(mse_loss(x, zero).dtype() == float16);
  CHECK(mse_loss(x, zero).item() == Approx(22850).epsilon(1e-3));
}
