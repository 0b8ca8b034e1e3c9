#include "pleat/ops/norm/group_norm.h"

#include <cmath>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::laid_out;
using test::numbers;
using test::relative_error;

namespace {

using Numbers = std::vector<double>;

struct Reference {
  Numbers y, mean, variance, dx, dweight, dbias;
};

/// The definition, in loops over row-major numbers.
Reference reference(const Tensor& x, const Tensor& dy, const Numbers& weight, const Numbers& bias,
                    int64_t num_groups, double eps) {
  const auto groups = static_cast<std::size_t>(num_groups);
  const auto images = static_cast<std::size_t>(x.size(0));
  const auto channels = static_cast<std::size_t>(x.size(1));
  const Numbers a = x.to_vector<double>();
  const Numbers g = dy.to_vector<double>();
  const std::size_t pixels = a.size() / (images * channels);
  const std::size_t length = channels / groups * pixels;
  const auto n = static_cast<double>(length);
  Reference r{Numbers(a.size()), Numbers(images * groups), Numbers(images * groups),
              Numbers(a.size()), Numbers(channels),        Numbers(channels)};
  for (std::size_t group = 0; group < images * groups; ++group) {
    const std::size_t first = group * length;
    const auto channel_of = [&](std::size_t i) { return i / pixels % channels; };
    for (std::size_t i = first; i < first + length; ++i) r.mean[group] += a[i] / n;
    for (std::size_t i = first; i < first + length; ++i)
      r.variance[group] += (a[i] - r.mean[group]) * (a[i] - r.mean[group]) / n;
    const double rstd = 1 / std::sqrt(r.variance[group] + eps);
    double sum = 0;
    double product = 0;
    for (std::size_t i = first; i < first + length; ++i) {
      const std::size_t c = channel_of(i);
      const double h = (a[i] - r.mean[group]) * rstd;
      r.y[i] = h * weight[c] + bias[c];
      r.dbias[c] += g[i];
      r.dweight[c] += g[i] * h;
      sum += g[i] * weight[c];
      product += g[i] * weight[c] * h;
    }
    for (std::size_t i = first; i < first + length; ++i) {
      const double h = (a[i] - r.mean[group]) * rstd;
      r.dx[i] = rstd * (g[i] * weight[channel_of(i)] - (sum + h * product) / n);
    }
  }
  return r;
}

double tolerance(DType dtype) {
  return dtype == float64 ? 1e-12 : dtype == float32 ? 2e-6 : dtype == float16 ? 1e-3 : 8e-3;
}

struct Case {
  Shape shape;
  int64_t groups;
};

}  // namespace

TEST_CASE("group_norm: result and gradients agree with the definition", "[group_norm]") {
  const std::vector<Case> cases{{{6, 4}, 2},          {{40, 24}, 1},        {{3, 5000}, 1},
                                {{900, 8}, 1},        {{5, 96}, 3},         {{3, 6, 5}, 3},
                                {{2, 8, 3, 4}, 1},    {{2, 8, 3, 4}, 8},    {{2, 6, 2, 3, 2}, 2},
                                {{1, 32, 16, 16}, 4}, {{40, 4, 9, 5}, 2},   {{2, 640, 2, 1}, 5},
                                {{3, 64, 4, 8}, 16},  {{1, 2, 90, 110}, 1}, {{0, 4, 3, 3}, 2},
                                {{4, 1, 3, 3}, 1},    {{1100, 2, 2, 2}, 1}};
  for (const auto& [shape, groups] : cases)
    for (const std::string& layout : test::layouts())
      for (const DType dtype : {float64, float32, float16, bfloat16}) {
        CAPTURE(shape, groups, layout, name(dtype));
        const Tensor x = laid_out(numbers(shape, dtype, 1), layout);
        const Tensor dy = laid_out(numbers(shape, dtype, 2), layout);
        const DType parameters = dtype == bfloat16 ? float32 : dtype;
        const Tensor weight = numbers({shape[1]}, parameters, 3), bias = numbers({shape[1]}, parameters, 4);
        const GroupNormOptions options{.num_groups = groups, .eps = 1e-3};
        const ops::GroupNormResult got = ops::group_norm_forward(x, weight, bias, options);
        const ops::GroupNormGrads grads =
            ops::group_norm_backward(dy, x, weight, got.mean, got.rstd, options);
        CHECK(got.y.dtype() == dtype);
        CHECK(got.y.shape() == shape);
        CHECK(grads.x.dtype() == dtype);
        CHECK(grads.weight.dtype() == parameters);
        if (shape[0] == 0) {
          CHECK(grads.x.shape() == shape);
          CHECK(grads.weight.to_vector() == std::vector<float>(4, 0));
          CHECK(grads.bias.to_vector() == std::vector<float>(4, 0));
          continue;
        }
        const Reference wanted =
            reference(x, dy, weight.to_vector<double>(), bias.to_vector<double>(), groups, options.eps);
        const double tolerated = tolerance(dtype);
        CHECK(relative_error(got.y, wanted.y) < tolerated);
        if (layout != "gaps") CHECK(got.y.strides() == x.strides());
        CHECK(relative_error(got.mean, wanted.mean) < 1e-6);
        CHECK(relative_error(got.variance, wanted.variance) < 1e-6);
        CHECK(relative_error(grads.x, wanted.dx) < tolerated);
        CHECK(relative_error(grads.weight, wanted.dweight) < 10 * tolerated);
        CHECK(relative_error(grads.bias, wanted.dbias) < 10 * tolerated);
        const ops::GroupNormGrads parameters_only =
            ops::group_norm_backward(dy, x, weight, got.mean, got.rstd, options, false);
        CHECK(!parameters_only.x.defined());
        CHECK(parameters_only.weight.to_vector() == grads.weight.to_vector());
        const ops::GroupNormGrads input_only =
            ops::group_norm_backward(dy, x, weight, got.mean, got.rstd, options, true, false);
        CHECK(input_only.x.to_vector() == grads.x.to_vector());
      }
}

TEST_CASE("group_norm: without weight and bias they are 1 and 0", "[group_norm]") {
  for (const Shape& shape : {Shape{3, 8, 5, 5}, Shape{7, 12}}) {
    const Tensor x = numbers(shape), dy = numbers(shape, float64, 2);
    const GroupNormOptions options{.num_groups = 4};
    const Tensor one = ones({shape[1]}, {.dtype = float64}), zero = zeros({shape[1]}, {.dtype = float64});
    const auto with = ops::group_norm_forward(x, one, zero, options);
    const auto without = ops::group_norm_forward(x, {}, {}, options);
    CHECK(relative_error(without.y, with.y) < 1e-14);
    const auto grads = ops::group_norm_backward(dy, x, {}, with.mean, with.rstd, options);
    const auto wanted = ops::group_norm_backward(dy, x, one, with.mean, with.rstd, options);
    CHECK(relative_error(grads.x, wanted.x) < 1e-14);
    CHECK(relative_error(grads.weight, wanted.weight) < 1e-14);
  }
}

TEST_CASE("group_norm: a mean of 10,000 costs float32 no more than the input's own rounding",
          "[group_norm]") {
  for (const Case& one : {Case{{4, 6, 40, 30}, 3}, Case{{30, 600}, 1}})
    for (const std::string layout : {"contiguous", "channels_last"}) {
      CAPTURE(one.shape, layout);
      Tensor far = numbers(one.shape, float64, 7);
      ops::add_into(far, far, scalar(1e4, float64));
      const Tensor x = laid_out(ops::cast(far, float32), layout);
      const Tensor dy = laid_out(numbers(one.shape, float32, 8), layout);
      const auto channels = static_cast<std::size_t>(one.shape[1]);
      const Reference wanted =
          reference(x, dy, Numbers(channels, 1.0), Numbers(channels, 0.0), one.groups, 1e-5);
      const GroupNormOptions options{.num_groups = one.groups};
      const auto got = ops::group_norm_forward(x, {}, {}, options);
      CHECK(relative_error(got.mean, wanted.mean) < 1e-9);
      CHECK(relative_error(got.y, wanted.y) < 1e-6);
      const auto grads = ops::group_norm_backward(dy, x, {}, got.mean, got.rstd, options);
      CHECK(relative_error(grads.x, wanted.dx) < 1e-6);
      CHECK(relative_error(grads.weight, wanted.dweight) < 1e-4);
    }
}

TEST_CASE("group_norm: rows have the same bits for any number of threads", "[group_norm]") {
  const int before = num_threads();
  for (const Case& one : {Case{{700, 33}, 3}, Case{{9, 4100}, 1}}) {
    const Tensor x = numbers(one.shape, float32), dy = numbers(one.shape, float32, 2);
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const GroupNormOptions options{.num_groups = one.groups};
      const auto got = ops::group_norm_forward(x, {}, {}, options);
      const auto grads = ops::group_norm_backward(dy, x, {}, got.mean, got.rstd, options);
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

TEST_CASE("instance_norm moves its running statistics by the mean over the images", "[group_norm]") {
  // Means 2, 4 and unbiased variances 2, 8 of the instances.
  const Tensor x = ops::cast(tensor({{{1.0, 3.0}}, {{2.0, 6.0}}}), float32);
  for (const DType dtype : {float32, float64}) {
    const Tensor input = ops::cast(x, dtype);
    const Tensor mean = ops::cast(tensor({1.0}), dtype), var = ops::cast(tensor({1.0}), dtype);
    ops::instance_norm_forward(input, {}, {}, mean, var, {.momentum = 0.5});
    CHECK(mean.to_vector() == std::vector<float>{2});
    CHECK(var.to_vector() == std::vector<float>{3});
  }
}

TEST_CASE("group_norm: bad input is refused", "[group_norm]") {
  const Tensor x = ones({2, 4, 3});
  const GroupNormOptions options{.num_groups = 2};
  const auto got = ops::group_norm_forward(x, {}, {}, options);
  const auto back = [&](const Tensor& dy, const Tensor& mean) {
    ops::group_norm_backward(dy, x, {}, mean, got.rstd, options);
  };
  CHECK_THROWS_WITH(back(ones({2, 4, 2}), got.mean), Contains("the gradient must be [2, 4, 3]"));
  CHECK_THROWS_WITH(back(ones({2, 4, 3}, {.dtype = float64}), got.mean),
                    Contains("the gradient must be float32"));
  CHECK_THROWS_WITH(back(x, ones({2, 4}, {.dtype = float64})), Contains("saved statistics must be [2, 2]"));
  CHECK_THROWS_WITH(back(x, ones({2, 2})), Contains("saved statistics must be float64"));
  CHECK_THROWS_AS(ops::group_norm_forward(x, ones({3}), {}, options), ShapeError);
  CHECK_THROWS_AS(ops::group_norm_forward(x, {}, {}, {.num_groups = 3}), ShapeError);
}
