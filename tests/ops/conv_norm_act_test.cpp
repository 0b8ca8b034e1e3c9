#include "pleat/ops/conv/conv_norm_act.h"

#include <array>
#include <vector>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// Operands of a norm of `channels`, of which the running statistics are not those of any batch.
BatchNormOperands norm_of(int64_t channels, DType dtype, const BatchNormOptions& options) {
  const TensorOptions typed{.dtype = dtype};
  return {randn({channels}, typed) * 0.3 + 1, randn({channels}, typed) * 0.5, randn({channels}, typed) * 0.1,
          rand({channels}, typed) + 0.5, options};
}

BatchNormOperands copied(BatchNormOperands norm) {
  for (Tensor* t : {&norm.weight, &norm.bias, &norm.running_mean, &norm.running_var})
    *t = t->clone().detach();
  norm.weight.set_requires_grad();
  norm.bias.set_requires_grad();
  return norm;
}

/// Result, gradients of x, weight, bias and the norm's parameters, and the running statistics.
template <class F>
std::vector<Tensor> outcome(const F& function, const std::array<Tensor, 3>& given,
                            const BatchNormOperands& of) {
  std::array<Tensor, 3> t = given;
  for (Tensor& one : t) one = ops::copy(one).set_requires_grad();
  const BatchNormOperands norm = copied(of);
  const Tensor y = function(t[0], t[1], t[2], norm);
  sum(y * y * y).backward();
  return {y.detach(),         t[0].grad(),      t[1].grad(),       t[2].grad(),
          norm.weight.grad(), norm.bias.grad(), norm.running_mean, norm.running_var};
}

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& options) {
  if (w.rank() == 3) return conv1d(x, w, b, options);
  return w.rank() == 4 ? conv2d(x, w, b, options) : conv3d(x, w, b, options);
}

Tensor normalised(const Tensor& x, const BatchNormOperands& of) {
  return batch_norm(x, of.weight, of.bias, of.running_mean, of.running_var, of.options);
}

/// The gradient of a bias before a norm in training is rounding alone.
void check_alike(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double bound, bool with_bias) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    if (i == 3 && !with_bias) continue;
    CHECK(a[i].shape() == b[i].shape());
    CHECK(test::relative_error(ops::cast(a[i], float64), ops::cast(b[i], float64)) < bound);
  }
}

}  // namespace

TEST_CASE("conv_norm_act and norm_act_conv are the functions that they are made of", "[ops][conv]") {
  manual_seed(4);
  struct Case {
    Shape x, w;
    const char* implementation;
  };
  std::vector<Case> cases = {{{2, 16, 9, 7}, {24, 16, 3, 3}, ""},
                             {{2, 16, 9, 7}, {24, 16, 3, 3}, "unfold"},
                             {{2, 16, 9, 7}, {24, 16, 3, 3}, "reference"},
                             {{3, 5, 11}, {4, 5, 3}, ""},
                             {{1, 17, 4, 5, 6}, {16, 17, 3, 3, 3}, ""}};
  if (default_device().is_cpu())
    for (const char* name : {"winograd", "direct"}) cases.push_back({{2, 16, 9, 7}, {24, 16, 3, 3}, name});
  for (const Case& c : cases)
    for (const DType dtype : {float32, float64})
      for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
        for (const bool training : {true, false})
          for (const Bounds& bounds : {Bounds(), Bounds{.min = 0}, Bounds{.min = -0.5, .max = 0.75}}) {
            CAPTURE(c.x, c.w, c.implementation, dtype, format, training, bounds.min);
            const ConvOptions options{.padding = 1, .implementation = c.implementation};
            const auto numbers = [&](const Shape& shape) {
              return ops::to_format(randn(shape, {.dtype = dtype}), format);
            };
            const std::array<Tensor, 3> t{numbers(c.x), numbers(c.w), randn({c.w[0]}, {.dtype = dtype})};
            Shape result = c.x;
            result[1] = c.w[0];
            const double bound = dtype == float32 ? 5e-5 : 1e-12;
            const BatchNormOptions of{.training = training, .bounds = bounds};
            BatchNormOptions adding = of;
            adding.residual = numbers(result);
            const auto after = norm_of(c.w[0], dtype, adding), before = norm_of(c.x[1], dtype, of);
            check_alike(outcome([&](auto& x, auto& w, auto& b,
                                    auto& norm) { return conv_norm_act(x, w, b, norm, options); },
                                t, after),
                        outcome([&](auto& x, auto& w, auto& b,
                                    auto& norm) { return normalised(conv(x, w, b, options), norm); },
                                t, after),
                        bound, !training);
            check_alike(outcome([&](auto& x, auto& w, auto& b,
                                    auto& norm) { return norm_act_conv(x, norm, w, b, options); },
                                t, before),
                        outcome([&](auto& x, auto& w, auto& b,
                                    auto& norm) { return conv(normalised(x, norm), w, b, options); },
                                t, before),
                        bound, true);
          }
}

TEST_CASE("norm_act_conv has derivatives of any order", "[ops][conv]") {
  manual_seed(6);
  const auto numbers = [](const Shape& shape) {
    return ops::to_format(randn(shape, {.dtype = float64}), MemoryFormat::channels_last);
  };
  for (const bool training : {true, false}) {
    const BatchNormOperands norm =
        norm_of(8, float64, {.training = training, .bounds = {.min = -2, .max = 3}});
    const auto f = [&](const std::vector<Tensor>& t) {
      return norm_act_conv(t[0],
                           {t[1], t[2], norm.running_mean.clone(), norm.running_var.clone(), norm.options},
                           t[3], t[4], {.padding = {1, 0}});
    };
    const std::vector<Tensor> at{numbers({2, 8, 2, 1}), norm.weight, norm.bias, numbers({8, 8, 2, 1}),
                                 randn({8}, {.dtype = float64})};
    CHECK(gradcheck(f, at));
    CHECK(gradgradcheck(f, at));
  }
}

TEST_CASE("norm_act_conv refuses before the running statistics change", "[ops][conv]") {
  const BatchNormOperands norm = norm_of(8, float32, {.training = true});
  const std::vector<double> before = norm.running_mean.to_vector<double>();
  CHECK_THROWS_WITH(norm_act_conv(randn({2, 8, 4, 4}), norm, randn({4, 9, 3, 3}), {}),
                    Contains("input has 8 channels, but weight [4, 9, 3, 3]"));
  CHECK_THROWS_WITH(norm_act_conv(randn({2, 8, 4, 4}), norm, randn({4}), {}), Contains("3 to 5 dimensions"));
  CHECK(norm.running_mean.to_vector<double>() == before);
}

TEST_CASE("norm_act_conv: an input that was changed in place has no gradient", "[ops][conv]") {
  const Tensor x = ops::to_format(randn({2, 8, 4, 4}), MemoryFormat::channels_last);
  const BatchNormOperands norm = norm_of(8, float32, {.training = true});
  norm.weight.set_requires_grad();
  const Tensor y = norm_act_conv(x, norm, randn({4, 8, 3, 3}).set_requires_grad(), {});
  add_(x, 1);
  CHECK_THROWS_WITH(sum(y).backward(), Contains("changed in place"));
}

TEST_CASE("norm_act_conv computes in an Autocast scope as its parts do", "[ops][conv]") {
  manual_seed(7);
  const Autocast half(bfloat16);
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    const Tensor x = ops::to_format(randn({2, 16, 6, 6}), format).set_requires_grad();
    const Tensor w = randn({16, 16, 3, 3}).set_requires_grad();
    const BatchNormOperands norm = norm_of(16, float32, {.bounds = {.min = 0}});
    const auto result = [&](const Tensor& y) {
      const std::vector<Tensor> grads = grad({sum(y.to(float32))}, {x, w});
      CHECK(y.dtype() == bfloat16);
      return std::array{y.to_vector<float>(), grads[0].to_vector<float>(), grads[1].to_vector<float>()};
    };
    CHECK(result(norm_act_conv(x, norm, w, {})) == result(conv2d(normalised(x, norm), w)));
  }
}

TEST_CASE("nn::BatchNorm2d gives its operands", "[ops][conv]") {
  nn::Conv2d layer{{.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm{{.num_features = 16}};
  const Tensor x = randn({2, 3, 8, 8});
  const Tensor y = conv_norm_act(x, layer.weight, layer.bias, norm.operands({}, {.min = 0}), layer.options);
  CHECK(norm.num_batches_tracked.item<int64_t>() == 1);
  CHECK(min(y).item() == 0);
}
