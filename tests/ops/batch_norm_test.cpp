#include "pleat/ops/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/tune/tuner.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::laid_out;
using test::numbers;
using test::relative_error;

namespace {

using Numbers = std::vector<double>;

const Bounds none, relu_bounds{.min = 0}, hardtanh_bounds{.min = -0.5, .max = 0.75};

struct Reference {
  Numbers y, mean, variance, dx, dweight, dbias, dresidual = {};
};

/// The definition, in loops over row-major numbers.
Reference reference(const Tensor& x, const Tensor& dy, const Numbers& weight, const Numbers& bias,
                    const Numbers* mean, const Numbers* variance, double eps, const Bounds& bounds = {},
                    const Numbers* residual = nullptr) {
  const bool training = mean == nullptr;
  const auto images = static_cast<std::size_t>(x.size(0));
  const auto channels = static_cast<std::size_t>(x.size(1));
  const Numbers a = x.to_vector<double>();
  Numbers g = dy.to_vector<double>();
  const std::size_t pixels = a.size() / (images * channels);
  const auto n = static_cast<double>(images * pixels);
  Reference r{Numbers(a.size()), Numbers(channels), Numbers(channels),
              Numbers(a.size()), Numbers(channels), Numbers(channels)};
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < images; ++i)
      for (std::size_t p = 0; p < pixels; ++p) own.push_back((i * channels + c) * pixels + p);
    if (training) {
      for (const auto i : own) r.mean[c] += a[i] / n;
      for (const auto i : own) r.variance[c] += (a[i] - r.mean[c]) * (a[i] - r.mean[c]) / n;
    } else {
      r.mean[c] = (*mean)[c];
      r.variance[c] = (*variance)[c];
    }
    const double rstd = 1 / std::sqrt(r.variance[c] + eps);
    for (const auto i : own) {
      const double h = (a[i] - r.mean[c]) * rstd;
      r.y[i] = h * weight[c] + bias[c] + (residual != nullptr ? (*residual)[i] : 0);
      if (r.y[i] <= bounds.min || r.y[i] >= bounds.max) {
        r.y[i] = std::clamp(r.y[i], bounds.min, bounds.max);
        g[i] = 0;
      }
      r.dbias[c] += g[i];
      r.dweight[c] += g[i] * h;
    }
    for (const auto i : own) {
      const double h = (a[i] - r.mean[c]) * rstd;
      r.dx[i] = weight[c] * rstd * (training ? g[i] - (r.dbias[c] + h * r.dweight[c]) / n : g[i]);
    }
  }
  r.dresidual = g;
  return r;
}

double tolerance(DType dtype) {
  return dtype == float64 ? 1e-12 : dtype == float32 ? 2e-6 : dtype == float16 ? 1e-3 : 8e-3;
}

}  // namespace

TEST_CASE("batch_norm: every implementation agrees with the definition", "[batch_norm]") {
  const std::vector<Shape> shapes{{6, 3},          {40, 5},         {3, 4, 5},          {2, 3, 4, 5},
                                  {3, 16, 9, 7},   {2, 2, 3, 2, 4}, {2, 3, 2, 2, 2, 3}, {1, 1, 2, 2},
                                  {5, 4, 1, 1},    {2, 100, 3, 3},  {70, 2, 16, 20},    {1, 2, 150, 170},
                                  {2, 1100, 2, 1}, {37, 48, 4, 4}};
  for (const ops::BatchNormImplementation* implementation : ops::batch_norm_implementations())
    for (const Shape& shape : shapes)
      for (const std::string layout : {"contiguous", "channels_last", "gaps"})
        for (const DType dtype : {float64, float32, float16, bfloat16})
          for (const auto& [training, bounds, adds] : {std::tuple{true, none, false},
                                                       {false, none, false},
                                                       {true, relu_bounds, false},
                                                       {false, relu_bounds, false},
                                                       {true, hardtanh_bounds, false},
                                                       {true, none, true},
                                                       {true, relu_bounds, true},
                                                       {true, hardtanh_bounds, true},
                                                       {false, hardtanh_bounds, true}}) {
            if (bounds.any() && !adds && (layout == "gaps" || count(shape) > 4000)) continue;
            if (adds && count(shape) > 10000) continue;
            // Of half types a result may be rounded to a bound, where no gradient passes.
            if (adds && bounds == hardtanh_bounds && is_half(dtype)) continue;
            CAPTURE(implementation->name(), shape, layout, name(dtype), training, to_string(bounds), adds);
            const Tensor x = laid_out(numbers(shape, dtype, 1), layout);
            const Tensor dy = laid_out(numbers(shape, dtype, 2), layout);
            const Tensor residual = adds ? numbers(shape, dtype, 6) : Tensor();
            const Numbers added = adds ? residual.to_vector<double>() : Numbers();
            const DType parameters = dtype == bfloat16 ? float32 : dtype;
            const Shape per_channel{shape[1]};
            const Tensor weight = numbers(per_channel, parameters, 3);
            const Tensor bias = numbers(per_channel, parameters, 4);
            const Tensor mean = numbers(per_channel, parameters, 5);
            const Tensor var = ops::cast(full(per_channel, 0.75), parameters);
            const BatchNormOptions options{.training = training,
                                           .eps = 1e-3,
                                           .residual = residual,
                                           .bounds = bounds,
                                           .implementation = std::string(implementation->name())};
            const ops::BatchNormProblem problem =
                ops::batch_norm_problem("batch_norm", x, weight, bias, mean, var, options);
            if (!implementation->unsupported(problem, ops::BatchNormPass::forward).empty()) continue;
            const Numbers mean_before = mean.to_vector<double>();
            const Numbers var_before = var.to_vector<double>();
            const Reference wanted =
                reference(x, dy, weight.to_vector<double>(), bias.to_vector<double>(),
                          training ? nullptr : &mean_before, training ? nullptr : &var_before, options.eps,
                          bounds, adds ? &added : nullptr);
            const ops::BatchNormResult got = ops::batch_norm_forward(x, weight, bias, mean, var, options);
            // cuDNN writes y before the ReLU: half types are rounded twice. oneDNN's sums are float32.
            const bool twice = implementation->name() == "cudnn" && is_half(dtype);
            const double coarser = twice ? 2 : implementation->name() == "onednn" ? 10 : 1;
            const double tolerated = tolerance(dtype) * coarser;
            CHECK(relative_error(got.y, wanted.y) < tolerated);
            CHECK(got.y.dtype() == dtype);
            if (layout != "gaps") CHECK(got.y.strides() == x.strides());
            CHECK(relative_error(got.mean, wanted.mean) < 1e-6 * coarser);
            if (!implementation->unsupported(problem, ops::BatchNormPass::backward).empty()) continue;
            const ops::BatchNormGrads grads =
                ops::batch_norm_backward(dy, x, weight, bias, got.mean, got.rstd, options, true, "batch_norm",
                                         adds && bounds.any() ? got.y : Tensor());
            CHECK(relative_error(grads.x, wanted.dx) < tolerated);
            if (adds && bounds.any()) CHECK(relative_error(grads.residual, wanted.dresidual) < tolerated);
            CHECK(relative_error(grads.weight, wanted.dweight) < 10 * tolerated);
            CHECK(relative_error(grads.bias, wanted.dbias) < 10 * tolerated);
            CHECK(grads.weight.dtype() == parameters);
            if (!training) CHECK(mean.to_vector<double>() == mean_before);
          }
}

TEST_CASE("batch_norm: PyTorch's results, gradients and running statistics", "[batch_norm]") {
  for (const test::Json& json : test::fixture_cases("layers", "batch_norm"))
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      auto inputs = test::tensors_from(json["inputs"]);
      auto outputs = test::tensors_from(json["outputs"]);
      auto grads = test::tensors_from(json["grads"]);
      const test::Json& given = json["options"];
      Tensor x = inputs["x"];
      if (format == MemoryFormat::channels_last && x.rank() < 3) continue;
      x = ops::to_format(x, format);
      CAPTURE(json["name"].get<std::string>(), name(format));
      BatchNormOptions options;
      options.training = given["training"].get<bool>() || !given["track_running_stats"].get<bool>();
      options.eps = given["eps"].get<double>();
      options.momentum.reset();
      if (!given["momentum"].is_null()) options.momentum = given["momentum"].get<double>();
      options.num_batches_tracked = inputs["num_batches_tracked"];
      const Tensor running_mean = inputs["running_mean"];
      const Tensor running_var = inputs["running_var"];
      const auto got =
          ops::batch_norm_forward(x, inputs["weight"], inputs["bias"], running_mean, running_var, options);
      CHECK(relative_error(got.y, outputs["y"]) < 1e-12);
      if (running_mean.defined()) {
        CHECK(relative_error(running_mean, outputs["running_mean"]) < 1e-12);
        CHECK(relative_error(running_var, outputs["running_var"]) < 1e-12);
      }
      const Tensor dy = test::tensor_from(json["grad_output"]);
      const auto back =
          ops::batch_norm_backward(dy, x, inputs["weight"], inputs["bias"], got.mean, got.rstd, options);
      CHECK(relative_error(back.x, grads["x"]) < 1e-11);
      if (inputs["weight"].defined()) {
        CHECK(relative_error(back.weight, grads["weight"]) < 1e-11);
        CHECK(relative_error(back.bias, grads["bias"]) < 1e-11);
      }
    }
}

TEST_CASE("batch_norm: a mean of 10,000 costs float32 no more than the input's own rounding",
          "[batch_norm]") {
  for (const std::string layout : {"contiguous", "channels_last"}) {
    CAPTURE(layout);
    const Tensor noise = numbers({4, 3, 60, 60}, float64, 7);
    const Tensor far = ops::copy(noise);
    ops::add_into(far, far, scalar(1e4, float64));
    const Tensor x = laid_out(ops::cast(far, float32), layout);
    const Tensor dy = laid_out(numbers({4, 3, 60, 60}, float32, 8), layout);
    const Numbers one(3, 1.0), zero(3, 0.0);
    const Reference wanted = reference(x, dy, one, zero, nullptr, nullptr, 1e-5);
    const BatchNormOptions options{.training = true};
    const auto got = ops::batch_norm_forward(x, {}, {}, {}, {}, options);
    CHECK(relative_error(got.mean, wanted.mean) < 1e-9);
    CHECK(relative_error(got.y, wanted.y) < 1e-6);
    const auto grads = ops::batch_norm_backward(dy, x, {}, {}, got.mean, got.rstd, options);
    CHECK(relative_error(grads.x, wanted.dx) < 1e-6);
    CHECK(relative_error(grads.weight, wanted.dweight) < 1e-4);
  }
}

TEST_CASE("batch_norm: the same bits for any number of threads", "[batch_norm]") {
  const int before = num_threads();
  for (const Shape& shape :
       {Shape{33, 6, 31, 17}, Shape{4, 130, 9, 8}, Shape{3000, 7}, Shape{2, 3, 200, 190}})
    for (const std::string layout : {"contiguous", "channels_last"}) {
      const Tensor x = laid_out(numbers(shape, float32, 11), layout);
      const Tensor dy = laid_out(numbers(shape, float32, 12), layout);
      std::vector<std::vector<float>> results;
      for (const int threads : {1, 2, 5}) {
        set_num_threads(threads);
        const BatchNormOptions options{.training = true};
        const auto got = ops::batch_norm_forward(x, {}, {}, {}, {}, options);
        const auto grads = ops::batch_norm_backward(dy, x, {}, {}, got.mean, got.rstd, options);
        std::vector<float> all = got.y.to_vector();
        for (const Tensor& t : {grads.x, grads.weight, grads.bias})
          for (const float value : t.to_vector()) all.push_back(value);
        results.push_back(std::move(all));
      }
      CHECK(results[0] == results[1]);
      CHECK(results[0] == results[2]);
    }
  set_num_threads(before);
}

TEST_CASE("batch_norm: running statistics follow momentum, or average all batches", "[batch_norm]") {
  const Tensor x = tensor({{1.0, 10.0}, {3.0, 14.0}, {8.0, 12.0}});  // means 4, 12; unbiased variances 13, 4
  SECTION("momentum") {
    const Tensor mean = tensor({0.0, 2.0}), var = tensor({1.0, 1.0});
    const Tensor seen = scalar(6, int64);
    const uint64_t version = seen.version();
    ops::batch_norm_forward(x, {}, {}, mean, var,
                            {.training = true, .momentum = 0.25, .num_batches_tracked = seen});
    CHECK(mean.to_vector() == std::vector<float>{1, 4.5});
    CHECK(var.to_vector() == std::vector<float>{4, 1.75});
    CHECK(seen.item<int64_t>() == 7);
    CHECK(seen.version() > version);
  }
  SECTION("cumulative") {
    const Tensor mean = tensor({0.0, 0.0}), var = tensor({1.0, 1.0});
    ops::batch_norm_forward(x, {}, {}, mean, var, {.training = true, .momentum = {}});
    CHECK(mean.to_vector() == std::vector<float>{4, 12});
    const Tensor next = tensor({{0.0, 0.0}, {0.0, 0.0}});
    const Tensor seen = scalar(1, int64);
    ops::batch_norm_forward(next, {}, {}, mean, var,
                            {.training = true, .momentum = {}, .num_batches_tracked = seen});
    CHECK(mean.to_vector() == std::vector<float>{2, 6});
    CHECK(seen.item<int64_t>() == 2);
    CHECK(var.to_vector() == std::vector<float>{6.5, 2});
  }
  SECTION("an empty batch leaves them alone") {
    const Tensor mean = tensor({5.0, 6.0}), var = tensor({2.0, 3.0});
    const Tensor seen = scalar(6, int64);
    const auto got = ops::batch_norm_forward(zeros({0, 2, 3, 3}), {}, {}, mean, var,
                                             {.training = true, .num_batches_tracked = seen});
    CHECK(seen.item<int64_t>() == 6);
    CHECK(got.y.shape() == Shape{0, 2, 3, 3});
    CHECK(mean.to_vector() == std::vector<float>{5, 6});
    const auto grads = ops::batch_norm_backward(got.y, got.y, {}, {}, got.mean, got.rstd, {.training = true});
    CHECK(grads.x.shape() == Shape{0, 2, 3, 3});
    CHECK(grads.bias.to_vector() == std::vector<float>{0, 0});
  }
  SECTION("float32 statistics beside a half input") {
    const Tensor mean = tensor({0.0, 2.0}), var = tensor({1.0, 1.0});
    ops::batch_norm_forward(ops::cast(x, float16), {}, {}, mean, var, {.training = true, .momentum = 0.25});
    CHECK(mean.to_vector() == std::vector<float>{1, 4.5});
    CHECK(mean.dtype() == float32);
  }
}

TEST_CASE("batch_norm: bad input is refused before anything changes", "[batch_norm][cpu]") {
  const Tensor x = ones({2, 3, 4, 4});
  const Tensor mean = full({3}, 7), var = full({3}, 8);
  const BatchNormOptions training{.training = true};
  const auto run = [&](const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const BatchNormOptions& options) {
    ops::batch_norm_forward(input, weight, bias, mean, var, options);
  };
  CHECK_THROWS_WITH(run(ones({3}), {}, {}, training),
                    Contains("batch_norm: input must be [N, C] or [N, C, spatial...], got [3] float32 cpu"));
  CHECK_THROWS_AS(run(zeros({2, 3}, {.dtype = int64}), {}, {}, training), DTypeError);
  for (const int64_t length : {0, 1, 4}) {
    const Tensor wrong = ones({length});
    CHECK_THROWS_WITH(run(x, wrong, {}, training),
                      Contains("weight must be [3], one number for each channel"));
    CHECK_THROWS_WITH(run(x, {}, wrong, training), Contains("bias must be [3]"));
    CHECK_THROWS_WITH(ops::batch_norm_forward(x, {}, {}, wrong, var, training),
                      Contains("running_mean must be [3]"));
    CHECK_THROWS_WITH(ops::batch_norm_forward(x, {}, {}, mean, wrong, training),
                      Contains("running_var must be [3]"));
  }
  CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .residual = ones({2, 3, 4, 1})}),
                    Contains("batch_norm: the residual must be [2, 3, 4, 4] like the input, got"));
  CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .residual = ones(x.shape(), {.dtype = float64})}),
                    Contains("the residual must be float32 like the input"));
  CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .num_batches_tracked = ones({2})}),
                    Contains("num_batches_tracked must be one number"));
  CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .num_batches_tracked = scalar(1, float32)}),
                    Contains("num_batches_tracked must be int64"));
  CHECK_THROWS_AS(run(x, ones({3, 1}), {}, training), ShapeError);
  CHECK_THROWS_WITH(run(x, ones({3}, {.dtype = float64}), {}, training),
                    Contains("weight must be float32, got [3] float64"));
  CHECK_THROWS_WITH(run(ones({1, 3}), {}, {}, training),
                    Contains("more than one value per channel, got input [1, 3] float32"));
  CHECK_THROWS_AS(run(ones({1, 3, 1, 1}), {}, {}, training), ShapeError);
  for (const double eps : {0.0, -1e-5, std::nan("")})
    CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .eps = eps}), Contains("eps must be above 0"));
  for (const double momentum : {-0.1, 1.1, std::nan("")})
    CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .momentum = momentum}),
                      Contains("momentum must be in [0, 1]"));
  for (const Bounds& bounds : {Bounds{.min = 1, .max = 0}, {.min = std::nan("")}})
    CHECK_THROWS_WITH(run(x, {}, {}, {.training = true, .bounds = bounds}),
                      Contains("bounds must have min <= max"));
  CHECK_THROWS_WITH(
      run(x, {}, {}, {.training = true, .implementation = "magic"}),
      Contains("there is no implementation \"magic\"; for the forward pass of training [2, 3, 16] "
               "float32 cpu there are: native, "));
  CHECK_THROWS_WITH(
      run(x, {}, {}, {.training = true, .bounds = {.min = 0}, .implementation = "cudnn"}),
      Contains("implementation \"cudnn\" cannot compute the forward pass of training [2, 3, 16] float32 cpu "
               "within [0, inf]: "));
  CHECK_THROWS_WITH(ops::batch_norm_forward(x, {}, {}, {}, {}, {}), Contains("set .training = true"));
  CHECK_THROWS_WITH(ops::batch_norm_forward(x, {}, {}, mean, {}, training), Contains("go together"));
  CHECK_THROWS_WITH(ops::batch_norm_forward(x, {}, {}, expand(ones({1}), {3}), var, training),
                    Contains("must be dense"));
  CHECK(mean.to_vector() == std::vector<float>(3, 7));
  CHECK(var.to_vector() == std::vector<float>(3, 8));

  const auto got = ops::batch_norm_forward(x, {}, {}, {}, {}, training);
  CHECK_THROWS_WITH(ops::batch_norm_backward(ones({2, 3, 4, 3}), x, {}, {}, got.mean, got.rstd, training),
                    Contains("the gradient must be [2, 3, 4, 4] like the input, got [2, 3, 4, 3]"));
  CHECK_THROWS_WITH(
      ops::batch_norm_backward(x, x, {}, {}, zeros({4}, {.dtype = float64}), got.rstd, training),
      Contains("saved mean must be [3]"));
  CHECK_THROWS_WITH(ops::batch_norm_backward(x, x, {}, ones({2}), got.mean, got.rstd, training),
                    Contains("bias must be [3]"));
}

TEST_CASE("batch norm is done as the call says, else as the scope's policy says", "[batch_norm]") {
  // The implementations differ in the last bits, by which they can be told apart.
  manual_seed(8);
  const Tensor x = randn({5, 3, 7, 7});
  const Tensor dy = randn(x.shape());
  const BatchNormOptions plain{.training = true};
  struct Bits {
    std::vector<float> y, dx;
    bool operator==(const Bits&) const = default;
  };
  const auto run = [&](const BatchNormOptions& options) {
    const auto got = ops::batch_norm_forward(x, {}, {}, {}, {}, options);
    // Backward from numbers that do not depend on forward's implementation.
    const Tensor mean = zeros({3}, {.dtype = float64}), rstd = ones({3}, {.dtype = float64});
    return Bits{got.y.to_vector(),
                ops::batch_norm_backward(dy, x, {}, {}, mean, rstd, options).x.to_vector()};
  };
  const Bits native = run({.training = true, .implementation = "native"});
  const Bits reference = run({.training = true, .implementation = "reference"});
  REQUIRE(native.y != reference.y);
  REQUIRE(native.dx != reference.dx);
  CHECK(run(plain) == native);
  CHECK(run({.training = true, .backward_implementation = "reference"}) == Bits{native.y, reference.dx});
  {
    const BatchNormPolicy guard{{.implementation = "reference"}};
    CHECK(run(plain) == reference);
    CHECK(run({.training = true, .implementation = "native"}) == native);
    {
      const BatchNormPolicy inner{{.backward_implementation = "reference"}};
      CHECK(run(plain) == Bits{native.y, reference.dx});
    }
    CHECK(run(plain) == reference);
    std::thread([&] { CHECK(BatchNormPolicy::current().implementation.empty()); }).join();
  }
  CHECK(run(plain) == native);
  if (ops::batch_norm_implementations().names(x.device()) ==
      std::vector<std::string>{"native", "reference"}) {
    // There is one beside the reference: nothing is timed.
    const std::size_t known = ops::Tuner::size();
    const BatchNormPolicy guard{{.benchmark = true}};
    CHECK(run(plain) == native);
    CHECK(ops::Tuner::size() == known);
  }
  const BatchNormPolicy guard{{.implementation = "magic"}};
  CHECK_THROWS_WITH(run(plain), Contains("batch_norm: there is no implementation \"magic\""));
}

TEST_CASE("cuda: every implementation of batch norm agrees with the reference on the CPU",
          "[batch_norm][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu("cuda");
  for (const ops::BatchNormImplementation* implementation : ops::batch_norm_implementations())
    for (const Shape& shape :
         {Shape{64, 32}, Shape{8, 16, 100}, Shape{16, 64, 14, 14}, Shape{5, 7, 9, 11}, Shape{2, 8, 4, 6, 6}})
      for (const std::string layout : {"contiguous", "channels_last"})
        for (const DType dtype : {float64, float32, float16, bfloat16})
          for (const auto& [training, bounds] : {std::pair{true, none},
                                                 {false, none},
                                                 {true, relu_bounds},
                                                 {false, relu_bounds},
                                                 {true, hardtanh_bounds}}) {
            CAPTURE(implementation->name(), shape, layout, name(dtype), training, to_string(bounds));
            const DType parameters = dtype == float64 ? float64 : float32;
            const Tensor x = laid_out(numbers(shape, dtype, 1), layout);
            const Tensor dy = laid_out(numbers(shape, dtype, 2), layout);
            const Tensor weight = numbers({shape[1]}, parameters, 3),
                         bias = numbers({shape[1]}, parameters, 4);
            const Tensor mean = numbers({shape[1]}, parameters, 5),
                         var = full({shape[1]}, 0.75, {.dtype = parameters});
            BatchNormOptions options{.training = training, .eps = 1e-3, .bounds = bounds};
            const auto there = [&](const Tensor& t) { return ops::to_device(t, gpu); };
            const Tensor own_mean = there(mean), own_var = there(var);
            options.implementation = "reference";
            const auto wanted = ops::batch_norm_forward(x, weight, bias, mean, var, options);
            const auto wanted_grads =
                ops::batch_norm_backward(dy, x, weight, bias, wanted.mean, wanted.rstd, options);
            options.implementation = implementation->name();
            const auto problem = ops::batch_norm_problem("batch_norm", there(x), there(weight), there(bias),
                                                         own_mean, own_var, options);
            if (!implementation->unsupported(problem, ops::BatchNormPass::forward).empty()) continue;
            const auto got =
                ops::batch_norm_forward(there(x), there(weight), there(bias), own_mean, own_var, options);
            const double tolerated = 3 * tolerance(dtype);
            const auto here = [](const Tensor& t) { return ops::to_device(t, Device()); };
            CHECK(relative_error(here(got.y), wanted.y) < tolerated);
            CHECK(relative_error(here(own_mean), mean) < 1e-5);
            CHECK(relative_error(here(own_var), var) < 1e-5);
            if (!implementation->unsupported(problem, ops::BatchNormPass::backward).empty()) continue;
            const auto grads = ops::batch_norm_backward(there(dy), there(x), there(weight), there(bias),
                                                        got.mean, got.rstd, options);
            CHECK(relative_error(here(grads.x), wanted_grads.x) < tolerated);
            CHECK(relative_error(here(grads.weight), wanted_grads.weight) < 10 * tolerated);
            CHECK(relative_error(here(grads.bias), wanted_grads.bias) < 10 * tolerated);
          }
}
