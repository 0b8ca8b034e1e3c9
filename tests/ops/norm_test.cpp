#include "pleat/ops/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

const Bounds none, relu_bounds{.min = 0}, hardtanh_bounds{.min = -0.5, .max = 0.75};
/// Training or not, and bounds.
const std::vector<std::pair<bool, Bounds>> modes{
    {true, none},         {false, none},           {true, relu_bounds},
    {false, relu_bounds}, {true, hardtanh_bounds}, {false, hardtanh_bounds}};

Tensor noise(const Shape& shape) { return randn(shape, {.dtype = float64}); }

/// Inputs of one shape in every layout.
std::vector<Tensor> layouts(const Shape& shape) {
  std::vector<Tensor> result;
  for (const std::string& layout : test::layouts())
    if (shape.size() > 2 || layout == "contiguous") result.push_back(test::laid_out(noise(shape), layout));
  return result;
}

}  // namespace

TEST_CASE("batch_norm: gradients, and gradients of gradients", "[batch_norm][cpu]") {
  manual_seed(3);
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 2, 3}, Shape{2, 3, 2, 2}, Shape{2, 2, 1, 2, 2}})
    for (const Tensor& x : layouts(shape))
      for (const auto& [training, bounds] : modes) {
        CAPTURE(x.describe(), training, to_string(bounds));
        const Tensor weight = noise({shape[1]}), bias = noise({shape[1]});
        const Tensor mean = noise({shape[1]}), var = rand({shape[1]}, {.dtype = float64}) + 0.5;
        const BatchNormOptions options{.training = training, .eps = 1e-2, .bounds = bounds};
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

TEST_CASE("batch_norm: gradients with a residual, and gradients of gradients", "[batch_norm][cpu]") {
  manual_seed(7);
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 3, 2, 2}})
    for (const Tensor& x : layouts(shape))
      for (const auto& mode : modes) {
        const auto& training = mode.first;
        const auto& bounds = mode.second;
        CAPTURE(x.describe(), training, to_string(bounds));
        const Tensor weight = noise({shape[1]}), bias = noise({shape[1]}), residual = noise(shape);
        const Tensor mean = noise({shape[1]}), var = rand({shape[1]}, {.dtype = float64}) + 0.5;
        const auto with = [&](const std::vector<Tensor>& t) {
          return batch_norm(t[0], t[1], t[2], mean.clone(), var.clone(),
                            {.training = training, .eps = 1e-2, .residual = t[3], .bounds = bounds});
        };
        CHECK(gradcheck(with, {x, weight, bias, residual}));
        CHECK(gradgradcheck(with, {x, weight, bias, residual}));
        // x is its own shortcut, and nothing but the residual asks for a gradient.
        const auto own = [&](const std::vector<Tensor>& t) {
          return batch_norm(t[0], {}, {}, mean.clone(), var.clone(),
                            {.training = training, .eps = 1e-2, .residual = t[0], .bounds = bounds});
        };
        CHECK(gradcheck(own, {x}));
        const auto alone = [&](const std::vector<Tensor>& t) {
          return batch_norm(x.detach(), {}, {}, mean.clone(), var.clone(),
                            {.training = training, .eps = 1e-2, .residual = t[0], .bounds = bounds});
        };
        CHECK(gradcheck(alone, {residual}));
        CHECK(gradgradcheck(alone, {residual}));
      }
}

namespace {

struct Operands {
  Tensor x, weight, bias, dy;
};

Operands operands(DType dtype, const std::string& layout) {
  const DType parameters = dtype == float64 ? float64 : float32;
  const Operands made{test::laid_out(test::numbers({3, 6, 5, 7}, dtype), layout),
                      test::numbers({6}, parameters, 2), test::numbers({6}, parameters, 3),
                      test::numbers({3, 6, 5, 7}, dtype, 4)};
  for (const Tensor& t : {made.x, made.weight, made.bias}) t.set_requires_grad();
  return made;
}

}  // namespace

TEST_CASE("batch_norm: with a residual and bounds it is hardtanh(batch_norm(x) + residual)", "[batch_norm]") {
  manual_seed(8);
  for (const std::string& layout : test::layouts())
    for (const std::string implementation : {"native", "reference"})
      for (const DType dtype : {float64, float32, float16, bfloat16})
        for (const Bounds& bounds : {relu_bounds, hardtanh_bounds}) {
          CAPTURE(layout, implementation, name(dtype), to_string(bounds));
          const auto [x, weight, bias, dy] = operands(dtype, layout);
          const Tensor residual = test::numbers(x.shape(), dtype, 5);
          residual.set_requires_grad();
          const Tensor wanted = hardtanh(
              batch_norm(x, weight, bias, {}, {}, {.training = true, .implementation = implementation}) +
                  residual,
              bounds.min, bounds.max);
          const Tensor got = batch_norm(
              x, weight, bias, {}, {},
              {.training = true, .residual = residual, .bounds = bounds, .implementation = implementation});
          // In half types the sum is rounded once here and twice there.
          const double tolerance = dtype == float64 ? 1e-12 : dtype == float32 ? 1e-6 : 2e-2;
          CHECK(test::relative_error(got, wanted) < tolerance);
          // That may be on a bound, where no gradient passes, in one of both only.
          if (is_half(dtype) && bounds == hardtanh_bounds) continue;
          const Grads wanted_grads = grad({wanted}, {x, weight, bias, residual}, {dy});
          const Grads grads = grad({got}, {x, weight, bias, residual}, {dy});
          for (std::size_t i = 0; i < 4; ++i)
            CHECK(test::relative_error(grads[i], wanted_grads[i]) < 2 * tolerance);
        }
}

TEST_CASE("batch_norm: what a residual keeps may not be changed before backward", "[batch_norm]") {
  const Tensor x = randn({2, 3, 4, 4}).set_requires_grad();
  const Tensor residual = randn({2, 3, 4, 4});
  const auto run = [&](const Bounds& bounds) {
    return batch_norm(x, {}, {}, {}, {}, {.training = true, .residual = residual, .bounds = bounds});
  };
  Tensor y = run(relu_bounds);
  {
    const NoGrad off;
    y += 1;
  }
  CHECK_THROWS_AS(sum(y).backward(), AutogradError);
  Tensor sum_alone = run(none);
  sum_alone += 1;
  CHECK_NOTHROW(sum(sum_alone).backward());
  y = run(relu_bounds);
  fill_(residual, 3);
  CHECK_NOTHROW(sum(y).backward());
}

TEST_CASE("batch_norm: gradients that arrive from several sides are added up", "[batch_norm]") {
  manual_seed(9);
  const Tensor x = noise({3, 2, 4, 3}), residual = noise({3, 2, 4, 3});
  for (const Tensor& t : {x, residual}) t.set_requires_grad();
  const auto run = [&] {
    return batch_norm(x, {}, {}, {}, {}, {.training = true, .residual = residual, .bounds = {.min = 0}});
  };
  const auto apart = [&] { return relu(batch_norm(x, {}, {}, {}, {}, {.training = true}) + residual); };
  const std::vector<Tensor> factors{noise(x.shape()), noise(x.shape()), noise(x.shape())};
  for (std::size_t uses = 1; uses <= 3; ++uses) {
    const auto loss_of = [&](const Tensor& y) {
      Tensor loss = sum(y * factors[0]);
      for (std::size_t i = 1; i < uses; ++i) loss = loss + sum(y * factors[i]);
      return loss;
    };
    CAPTURE(uses);
    const Grads wanted = grad({loss_of(apart())}, {x, residual});
    for (const bool create_graph : {false, true}) {
      const Grads got = grad({loss_of(run())}, {x, residual}, {}, {.create_graph = create_graph});
      for (std::size_t i = 0; i < 2; ++i) CHECK(test::relative_error(got[i], wanted[i]) < 1e-12);
    }
    // Who looks at the result's gradient sees the sum.
    const Tensor y = run(), plain = apart();
    const Grads of_result = grad({loss_of(y)}, {y, residual});
    const Grads of_plain = grad({loss_of(plain)}, {plain, residual});
    for (std::size_t i = 0; i < 2; ++i) CHECK(test::relative_error(of_result[i], of_plain[i]) < 1e-12);
    const Tensor hooked = run();
    hooked.register_hook([&](const Tensor& dy) {
      CHECK(test::relative_error(dy, of_plain[0]) < 1e-12);
      return dy * 2;
    });
    CHECK(test::relative_error(grad({loss_of(hooked)}, {residual})[0] / 2, wanted[1]) < 1e-12);
  }
}

TEST_CASE("batch_norm: the recorded gradient is the fused one", "[batch_norm]") {
  manual_seed(4);
  const Tensor x = noise({3, 4, 5, 2});
  const Tensor weight = noise({4}), bias = noise({4});
  for (const Tensor& t : {x, weight, bias}) t.set_requires_grad();
  for (const auto& [training, bounds] : modes) {
    const Tensor y = batch_norm(x, weight, bias, zeros({4}, {.dtype = float64}),
                                ones({4}, {.dtype = float64}), {.training = training, .bounds = bounds});
    const Tensor dy = noise(x.shape());
    const Grads fused = grad({y}, {x, weight, bias}, {dy}, {.retain_graph = true});
    const Grads recorded = grad({y}, {x, weight, bias}, {dy}, {.create_graph = true});
    for (std::size_t i = 0; i < 3; ++i) CHECK(test::relative_error(recorded[i], fused[i]) < 1e-12);
    const Tensor residual = noise(x.shape()).set_requires_grad();
    const Tensor added =
        batch_norm(x, weight, bias, zeros({4}, {.dtype = float64}), ones({4}, {.dtype = float64}),
                   {.training = training, .residual = residual, .bounds = bounds});
    const std::vector<Tensor> inputs{x, weight, bias, residual};
    const Grads fused_all = grad({added}, inputs, {dy}, {.retain_graph = true});
    const Grads recorded_all = grad({added}, inputs, {dy}, {.create_graph = true});
    for (std::size_t i = 0; i < 4; ++i) CHECK(test::relative_error(recorded_all[i], fused_all[i]) < 1e-12);
  }
}

TEST_CASE("batch_norm: with bounds it is hardtanh(batch_norm(x)), gradients and all", "[batch_norm]") {
  manual_seed(6);
  for (const std::string& layout : test::layouts())
    for (const std::string implementation : {"native", "reference"})
      for (const DType dtype : {float64, float32, float16, bfloat16})
        // A number of which a half type has another.
        for (const Bounds& bounds : {relu_bounds, hardtanh_bounds, Bounds{.min = -0.3, .max = 0.1}}) {
          CAPTURE(layout, implementation, name(dtype), to_string(bounds));
          const auto [x, weight, bias, dy] = operands(dtype, layout);
          const BatchNormOptions apart{.training = true, .implementation = implementation};
          BatchNormOptions together = apart;
          together.bounds = bounds;
          const Tensor wanted = hardtanh(batch_norm(x, weight, bias, {}, {}, apart), bounds.min, bounds.max);
          const Tensor got = batch_norm(x, weight, bias, {}, {}, together);
          CHECK(got.to_vector() == wanted.to_vector());
          const Grads wanted_grads = grad({wanted}, {x, weight, bias}, {dy});
          const Grads grads = grad({got}, {x, weight, bias}, {dy});
          for (std::size_t i = 0; i < 3; ++i)
            CHECK(test::relative_error(grads[i], wanted_grads[i]) < (dtype == float64   ? 1e-12
                                                                     : dtype == float32 ? 1e-6
                                                                                        : 2e-2));
        }
}

TEST_CASE("batch_norm: within bounds NaN stays, and the gradient passes between them", "[batch_norm]") {
  const double nan = std::nan("");
  const Tensor x = reshape(tensor({-1, 0, 3, 6, 7, nan}, float64), {6, 1});
  const Tensor mean = zeros({1}, {.dtype = float64}), var = ones({1}, {.dtype = float64});
  const Tensor bias = zeros({1}, {.dtype = float64}).set_requires_grad();
  // NaN passes its gradient on, too.
  for (const auto& [bounds, open] : {std::pair{Bounds{.min = 0}, 4.0}, {{.min = 0, .max = 6}, 2.0}})
    for (const std::string implementation : {"native", "reference"})
      for (const bool adds : {false, true})
        for (const bool recorded : {false, true}) {
          CAPTURE(to_string(bounds), implementation, adds, recorded);
          // The variance and eps are 1: the result is x within bounds.
          const Tensor y = batch_norm(x, {}, bias, mean, var - 1e-5,
                                      {.residual = adds ? zeros_like(x) : Tensor(),
                                       .bounds = bounds,
                                       .implementation = implementation});
          const auto values = y.to_vector<double>();
          CHECK(std::isnan(values[5]));
          CHECK(values[0] == 0);
          CHECK(values[4] == std::min(bounds.max, 7.0));
          const Tensor db = grad({y}, {bias}, {ones_like(y)}, {.create_graph = recorded})[0];
          CHECK(db.item() == Approx(open));
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
  const Tensor y = sum(batch_norm(x, weight, {}, {}, {}, {.training = true}));
  CHECK(grad({y}, {x, weight}, {}, {.create_graph = true})[1].to_vector() == std::vector<float>(3, 0));
  y.backward();
  CHECK(x.grad().shape() == Shape{0, 3, 2, 2});
  CHECK(weight.grad().to_vector() == std::vector<float>(3, 0));
}

namespace {

using Named = std::map<std::string, Tensor>;

/// Runs `norm(inputs)` of a fixture in every layout, and compares result, statistics and gradients.
void check_case(const test::Json& json, const std::function<Tensor(Named&)>& norm) {
  for (const std::string& layout : test::layouts()) {
    CAPTURE(json["name"].get<std::string>(), layout);
    Named inputs = test::tensors_from(json["inputs"]);
    Named outputs = test::tensors_from(json["outputs"]);
    inputs["x"] = test::laid_out(inputs["x"], layout);
    std::vector<Tensor> leaves;
    std::vector<Tensor> wanted;
    for (const auto& [name, gradient] : test::tensors_from(json["grads"])) {
      leaves.push_back(inputs[name].set_requires_grad());
      wanted.push_back(gradient);
    }
    const Tensor y = norm(inputs);
    for (const auto& [name, value] : outputs)
      CHECK(test::relative_error(name == "y" ? y : inputs[name], value) < 1e-12);
    const Tensor dy = test::tensor_from(json["grad_output"]);
    const Grads fused = grad({y}, leaves, {dy}, {.retain_graph = true});
    const Grads recorded = grad({y}, leaves, {dy}, {.create_graph = true});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      // Groups of two values leave all but nothing of their gradient, and so few of its digits.
      CHECK(test::relative_error(fused[i], wanted[i]) < 1e-9);
      CHECK(test::relative_error(recorded[i], wanted[i]) < 1e-9);
    }
  }
}

}  // namespace

TEST_CASE("group, layer and instance norm: PyTorch's results and gradients", "[norm]") {
  for (const test::Json& json : test::fixture_cases("layers", "group_norm")) {
    const GroupNormOptions options{.num_groups = json["options"]["num_groups"].get<int64_t>(),
                                   .eps = json["options"]["eps"].get<double>()};
    check_case(json, [&](Named& in) { return group_norm(in["x"], in["weight"], in["bias"], options); });
  }
  for (const test::Json& json : test::fixture_cases("layers", "layer_norm")) {
    const LayerNormOptions options{.normalized_shape = json["options"]["normalized_shape"].get<Shape>(),
                                   .eps = json["options"]["eps"].get<double>()};
    check_case(json, [&](Named& in) { return layer_norm(in["x"], in["weight"], in["bias"], options); });
  }
  for (const test::Json& json : test::fixture_cases("layers", "instance_norm")) {
    const InstanceNormOptions options{.use_input_stats = json["options"]["use_input_stats"].get<bool>(),
                                      .momentum = json["options"]["momentum"].get<double>(),
                                      .eps = json["options"]["eps"].get<double>()};
    check_case(json, [&](Named& in) {
      return instance_norm(in["x"], in["weight"], in["bias"], in["running_mean"], in["running_var"], options);
    });
  }
}

TEST_CASE("group, layer and instance norm: gradients, and gradients of gradients", "[norm][cpu]") {
  manual_seed(5);
  for (const Shape& shape : {Shape{2, 4}, Shape{2, 4, 3}, Shape{2, 4, 2, 2}, Shape{1, 2, 2, 1, 2}})
    for (const Tensor& x : layouts(shape)) {
      CAPTURE(x.describe());
      const std::vector<Tensor> inputs{x, noise({shape[1]}), noise({shape[1]})};
      const auto groups = [](const std::vector<Tensor>& t) {
        return group_norm(t[0], t[1], t[2], {.num_groups = 2, .eps = 1e-2});
      };
      CHECK(gradcheck(groups, inputs));
      CHECK(gradgradcheck(groups, inputs));
      const auto instances = [](const std::vector<Tensor>& t) {
        return instance_norm(t[0], t[1], t[2], {}, {}, {.eps = 1e-2});
      };
      if (shape.size() > 2) {
        CHECK(gradcheck(instances, inputs));
        CHECK(gradgradcheck(instances, inputs));
      }
      const Shape last(shape.begin() + 1, shape.end());
      const auto layers = [&](const std::vector<Tensor>& t) {
        return layer_norm(t[0], t[1], t[2], {.normalized_shape = last, .eps = 1e-2});
      };
      CHECK(gradcheck(layers, {x, noise(last), noise(last)}));
      CHECK(gradgradcheck(layers, {x, noise(last), noise(last)}));
    }
}

TEST_CASE("group, layer and instance norm: float32, half types, a large mean", "[norm]") {
  for (const std::string& layout : test::layouts()) {
    const Tensor x = test::laid_out(test::numbers({3, 24, 17, 9}) + 1000, layout);
    const Tensor weight = test::numbers({24}, float64, 2), bias = test::numbers({24}, float64, 3);
    const Tensor single = x.to(float32);
    const Tensor exact = single.to(float64);
    const Tensor wanted = group_norm(exact, weight, bias, {.num_groups = 6});
    const Tensor got = group_norm(single, weight.to(float32), bias.to(float32), {.num_groups = 6});
    CHECK(test::relative_error(got, wanted) < 1e-6);
    CHECK(got.is_contiguous(x.memory_format()));
    const Tensor half = test::laid_out(test::numbers({3, 24, 17, 9}), layout).to(bfloat16);
    const Tensor y = group_norm(half, weight.to(float32), {}, {.num_groups = 3});
    CHECK(y.dtype() == bfloat16);
    CHECK(test::relative_error(y, group_norm(half.to(float64), weight, {}, {.num_groups = 3})) < 1e-2);
    const LayerNormOptions layer{.normalized_shape = {17, 9}};
    CHECK(test::relative_error(layer_norm(single, {}, {}, layer), layer_norm(exact, {}, {}, layer)) < 1e-6);
    CHECK(layer_norm(half, ones({17, 9}), {}, layer).dtype() == bfloat16);
  }
}

TEST_CASE("group norm: the same bits for any number of threads", "[norm]") {
  const int before = num_threads();
  for (const std::string layout : {"contiguous", "channels_last"}) {
    const Tensor x = test::laid_out(test::numbers({9, 30, 23, 15}, float32), layout);
    const Tensor weight = test::numbers({30}, float32);
    x.set_requires_grad();
    weight.set_requires_grad();
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const Tensor y = group_norm(x, weight, {}, {.num_groups = 5});
      std::vector<float> all = y.to_vector();
      for (const Tensor& t : grad({y}, {x, weight}, {y.detach()}))
        for (const float value : t.to_vector()) all.push_back(value);
      results.push_back(std::move(all));
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
  set_num_threads(before);
}

TEST_CASE("group, layer and instance norm: bad input is refused, an empty batch is not", "[norm]") {
  const Tensor x = ones({2, 4, 3});
  CHECK_THROWS_WITH(group_norm(x, {}, {}, {.num_groups = 3}),
                    Contains("group_norm: 3 groups do not divide the 4"));
  CHECK_THROWS_WITH(group_norm(x, {}, {}, {.num_groups = 0}), Contains("num_groups must be at least 1"));
  CHECK_THROWS_WITH(group_norm(x, ones({3}), {}, {.num_groups = 2}), Contains("weight must be [4]"));
  CHECK_THROWS_WITH(group_norm(x, {}, {}, {.num_groups = 2, .eps = 0}), Contains("eps must be above 0"));
  CHECK_THROWS_AS(group_norm(ones({4}), {}, {}, {}), ShapeError);
  CHECK_THROWS_AS(group_norm(zeros({2, 4}, {.dtype = int64}), {}, {}, {}), DTypeError);
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, {.normalized_shape = {4}}),
                    Contains("layer_norm: input must end in the dimensions [4], got [2, 4, 3]"));
  CHECK_THROWS_AS(layer_norm(x, {}, {}, {.normalized_shape = Shape{}}), ShapeError);
  CHECK_THROWS_WITH(layer_norm(x, ones({4}), {}, {.normalized_shape = {3}}), Contains("weight must be [3]"));
  CHECK_THROWS_WITH(layer_norm(x, {}, ones({3}, {.dtype = float64}), {.normalized_shape = {3}}),
                    Contains("bias must be float32"));
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, {.normalized_shape = {3}, .eps = -1}), Contains("layer_norm: eps"));
  const Tensor mean = zeros({4}), var = ones({4});
  CHECK_THROWS_WITH(instance_norm(ones({2, 4, 1}), {}, {}, mean, var, {}),
                    Contains("instance_norm: needs more than one element per channel and image"));
  CHECK_THROWS_WITH(instance_norm(x, {}, {}, {}, {}, {.use_input_stats = false}),
                    Contains("running statistics"));
  CHECK_THROWS_WITH(instance_norm(x, {}, {}, mean, ones({3}), {}), Contains("running_var must be [4]"));
  CHECK_THROWS_AS(instance_norm(x, {}, {}, mean, var, {.momentum = 2}), ValueError);
  // In evaluation batch norm does the work, and must not speak for itself.
  const InstanceNormOptions evaluation{.use_input_stats = false};
  CHECK_THROWS_WITH(instance_norm(x, ones({3}), {}, mean, var, evaluation),
                    Contains("instance_norm: weight must be [4]"));
  CHECK_THROWS_WITH(instance_norm(ones({4}), {}, {}, mean, var, evaluation),
                    Contains("instance_norm: input must"));
  CHECK_THROWS_WITH(instance_norm(zeros({2, 4}, {.dtype = int64}), {}, {}, mean, var, evaluation),
                    Contains("instance_norm: input must be floating"));
  CHECK_THROWS_WITH(instance_norm(x, {}, {}, mean, ones({3}), evaluation),
                    Contains("instance_norm: running_var must be [4]"));
  CHECK_THROWS_WITH(instance_norm(x, {}, {}, mean, var, {.use_input_stats = false, .momentum = 2}),
                    Contains("instance_norm: momentum must be in [0, 1]"));
  CHECK_THROWS_WITH(instance_norm(x, {}, {}, mean, var, {.use_input_stats = false, .eps = 0}),
                    Contains("instance_norm: eps must be above 0"));
  CHECK(mean.to_vector() == std::vector<float>(4, 0));
  const Tensor empty = zeros({0, 4, 3});
  empty.set_requires_grad();
  sum(group_norm(empty, {}, {}, {.num_groups = 2}) + layer_norm(empty, {}, {}, {.normalized_shape = {3}}) +
      instance_norm(empty, {}, {}, mean, var, {}))
      .backward();
  CHECK(empty.grad().shape() == Shape{0, 4, 3});
}
