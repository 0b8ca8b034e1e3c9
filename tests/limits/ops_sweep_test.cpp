#include "pleat/autograd/backward.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/distance.h"
#include "pleat/nn/loss.h"
#include "pleat/nn/pool.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/conv_norm_act.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/loss/kernels.h"
#include "pleat/ops/loss/loss.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/norm/group_norm.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/sample/grid_sample.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/ops/unfold/unfold.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/limits/sweep.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("numbers meet tensors from all over int64", "[limits]") {
  for (const DType dtype : {float32, uint8, int32, int64, float16, boolean}) {
    const Tensor x = ones({3}, {.dtype = dtype});
    sweep("polygamma", {2}, [&](const Integers& i) { return polygamma(i[0], x); });
    sweep("add", {2}, [&](const Integers& i) { return add(x, i[0]) + add(i[0], x); });
    sweep("subtract", {2}, [&](const Integers& i) { return subtract(x, i[0]) + subtract(i[0], x); });
    sweep("multiply", {2}, [&](const Integers& i) { return multiply(x, i[0]) + multiply(i[0], x); });
    sweep("divide", {2}, [&](const Integers& i) { return divide(x, i[0]) + divide(i[0], x); });
    sweep("add_", {2}, [&](const Integers& i) { return add_(x, i[0]); });
    sweep("subtract_", {2}, [&](const Integers& i) { return subtract_(x, i[0]); });
    sweep("multiply_", {2}, [&](const Integers& i) { return multiply_(x, i[0]); });
    sweep("divide_", {2}, [&](const Integers& i) { return divide_(x, i[0]); });
    sweep("fill_", {2}, [&](const Integers& i) { return fill_(x, i[0]); });
    sweep("fill", {2}, [&](const Integers& i) { ops::fill(x, i[0]); });
    sweep("pow", {2}, [&](const Integers& i) { return pow(x, i[0]); });
    sweep("pow of a number", {2}, [&](const Integers& i) { return pow(i[0], x); });
    sweep("remainder", {2}, [&](const Integers& i) { return remainder(x, i[0]); });
    sweep("remainder of tensors", {5, 2},
          [&](const Integers& i) { return remainder(tensor({i[0]}), tensor({i[1]})); });
    sweep("fmod", {2}, [&](const Integers& i) { return fmod(x, i[0]) + fmod(i[0], x); });
    sweep("fmod of tensors", {5, 2}, [&](const Integers& i) { return fmod(tensor({i[0]}), tensor({i[1]})); });
    sweep("floor_divide", {2},
          [&](const Integers& i) { return floor_divide(x, i[0]) + floor_divide(i[0], x); });
    sweep("floor_divide of tensors", {5, 2},
          [&](const Integers& i) { return floor_divide(tensor({i[0]}), tensor({i[1]})); });
    sweep("clamp", {0, 2}, [&](const Integers& i) { return clamp(x, {.min = i[0], .max = i[1]}); });
    sweep("clamp_", {0, 2}, [&](const Integers& i) { return clamp_(x, {.min = i[0], .max = i[1]}); });
    if (is_floating(dtype))
      sweep("clamp's gradient", {0, 2}, [&](const Integers& i) {
        const Tensor leaf = x.detach().set_requires_grad();
        return grad({sum(clamp(leaf, {.min = i[0], .max = i[1]}))}, {leaf})[0];
      });
    sweep("maximum", {2}, [&](const Integers& i) { return maximum(x, i[0]); });
    sweep("minimum", {2}, [&](const Integers& i) { return minimum(x, i[0]); });
    sweep("lerp", {2}, [&](const Integers& i) { return lerp(x, x, i[0]); });
    sweep("lerp_", {2}, [&](const Integers& i) { return lerp_(x, x, i[0]); });
    sweep("equal", {2}, [&](const Integers& i) { return equal(x, i[0]); });
    sweep("not_equal", {2}, [&](const Integers& i) { return not_equal(x, i[0]); });
    sweep("less", {2}, [&](const Integers& i) { return less(x, i[0]); });
    sweep("less_equal", {2}, [&](const Integers& i) { return less_equal(x, i[0]); });
    sweep("greater", {2}, [&](const Integers& i) { return greater(x, i[0]); });
    sweep("greater_equal", {2}, [&](const Integers& i) { return greater_equal(x, i[0]); });
    sweep("where", {2, 3},
          [&](const Integers& i) { return where(x > 0, x, i[0]) + 0 * where(x > 0, i[0], i[1]); });
    sweep("masked_fill", {2}, [&](const Integers& i) { return masked_fill(x, x > 0, i[0]); });
    sweep("masked_fill_", {2}, [&](const Integers& i) { return masked_fill_(x, x > 0, i[0]); });
    sweep("values", {2, 3}, [&](const Integers& i) {
      const Tensor v = tensor({i[0], i[1]});
      (void)(v + v), (void)(v * v), (void)(v - v), (void)-v, (void)abs(v), (void)sign(v), (void)square(v);
      (void)sum(v), (void)prod(v), (void)cumsum(v, 0), (void)cumprod(v, 0), (void)mean(v), (void)var(v),
          (void)norm(v);
      (void)v.to(int32), (void)v.to(float16), (void)matmul(view(v, {1, 2}), view(v, {2, 1}));
      return v.to(dtype);
    });
  }
  sweep("addmm", {2, 3}, [](const Integers& i) {
    return addmm(ones({2, 2}), ones({2, 2}), ones({2, 2}), {.beta = i[0], .alpha = i[1]});
  });
}

TEST_CASE("multi_margin_loss takes integers from all over int64", "[limits]") {
  sweep("multi_margin_loss", {1, 2, 0}, [](const Integers& i) {
    return multi_margin_loss(ones({2, 3}), tensor({i[1], i[2]}), {.p = i[0]});
  });
}

TEST_CASE("reductions, scans and softmax take integers from all over int64", "[limits]") {
  for (const int64_t rank : {1, 2, 4}) {
    const auto each = [rank](const char* name, auto f) {
      sweep_tensors(name, rank, {0, 1}, [&](const Tensor& x, const Integers& i) {
        return f(x, Dims{i[0], i[1]});
      });
      sweep_tensors(name, rank, {0}, [&](const Tensor& x, const Integers& i) { return f(x, Dims(i[0])); });
      sweep_tensors(name, rank, {}, [&](const Tensor& x, const Integers&) { return f(x, Dims()); });
    };
    each("sum", [](const Tensor& x, const Dims& d) { return sum(x, d); });
    each("mean", [](const Tensor& x, const Dims& d) { return mean(x, d); });
    each("prod", [](const Tensor& x, const Dims& d) { return prod(x, d); });
    each("var", [](const Tensor& x, const Dims& d) { return var(x, d); });
    each("stddev", [](const Tensor& x, const Dims& d) { return stddev(x, d); });
    each("var_mean", [](const Tensor& x, const Dims& d) { return var_mean(x, d).var; });
    each("norm", [](const Tensor& x, const Dims& d) { return norm(x, d); });
    each("logsumexp", [](const Tensor& x, const Dims& d) { return logsumexp(x, d); });
    each("max", [](const Tensor& x, const Dims& d) { return max(x, d); });
    each("min", [](const Tensor& x, const Dims& d) { return min(x, d); });
    each("any", [](const Tensor& x, const Dims& d) { return any(x, d); });
    each("all", [](const Tensor& x, const Dims& d) { return all(x, d); });
    const auto along = [rank](const char* name, auto f) {
      sweep_tensors(name, rank, {0}, [&](const Tensor& x, const Integers& i) { return f(x, i[0]); });
    };
    along("argmax", [](const Tensor& x, int64_t d) { return argmax(x, d); });
    along("argmin", [](const Tensor& x, int64_t d) { return argmin(x, d); });
    along("max_with_indices", [](const Tensor& x, int64_t d) { return max_with_indices(x, d).values; });
    along("min_with_indices", [](const Tensor& x, int64_t d) { return min_with_indices(x, d).values; });
    along("softmax", [](const Tensor& x, int64_t d) { return softmax(x, d); });
    along("log_softmax", [](const Tensor& x, int64_t d) { return log_softmax(x, d); });
    along("softmin", [](const Tensor& x, int64_t d) { return softmin(x, d); });
    along("glu", [](const Tensor& x, int64_t d) { return glu(x, d); });
    along("cross", [](const Tensor& x, int64_t d) { return cross(x, x, d); });
    along("tril", [](const Tensor& x, int64_t d) { return tril(x, d); });
    along("triu", [](const Tensor& x, int64_t d) { return triu(x, d); });
    along("cumsum", [](const Tensor& x, int64_t d) { return cumsum(x, d); });
    along("cumprod", [](const Tensor& x, int64_t d) { return cumprod(x, d); });
    along("linear_scan", [](const Tensor& x, int64_t d) { return linear_scan(x, x, d); });
    sweep_tensors("shifted", rank, {0, 1},
                  [](const Tensor& x, const Integers& i) { return shifted(x, i[0], i[1], 0); });
    sweep_tensors("sum_to", rank, {1, 1}, [](const Tensor& x, const Integers& i) {
      return sum_to(x, {i[0], i[1]});
    });
  }
}

TEST_CASE("windows take integers from all over int64", "[limits]") {
  sweep_tensors("unfold", 4, {2, 1, 0, 1}, [](const Tensor& x, const Integers& i) {
    return unfold(x, {.kernel_size = i[0], .stride = i[1], .padding = i[2], .dilation = i[3]});
  });
  sweep("unfold of sides", {2, 2, 1, 1}, [](const Integers& i) {
    return unfold(ones({1, 1, 4, 4}),
                  {.kernel_size = {i[0], i[1]}, .padding = Padding({{i[2], i[3]}, {i[2], 0}})});
  });
  sweep("fold", {3, 2, 1, 0}, [](const Integers& i) {
    return fold(ones({1, 4, 4}), {i[0], 3}, {.kernel_size = i[1], .stride = i[2], .padding = i[3]});
  });
  const Tensor x = ones({2, 4, 5}).set_requires_grad();
  const Tensor w = ones({4, 2, 2}).set_requires_grad();
  sweep("conv1d", {1, 0, 1, 2}, [&](const Integers& i) {
    return conv1d(x, w, {.stride = i[0], .padding = i[1], .dilation = i[2], .groups = i[3]});
  });
  const BatchNormOperands four{ones({4}), zeros({4}), zeros({4}), ones({4})};
  sweep("conv_norm_act", {1, 0, 1, 1}, [&](const Integers& i) {
    return conv_norm_act(ones({2, 4, 4}), ones({4, 4, 2}), {}, four,
                         {.stride = i[0], .padding = i[1], .dilation = i[2], .groups = i[3]});
  });
  sweep("norm_act_conv", {1, 0, 1, 1}, [&](const Integers& i) {
    return norm_act_conv(ones({2, 4, 4}), four, ones({4, 4, 2}), {},
                         {.stride = i[0], .padding = i[1], .dilation = i[2], .groups = i[3]});
  });
  sweep("conv2d", {1, 0, 0, 1}, [&](const Integers& i) {
    return conv2d(ones({1, 2, 4, 5}), ones({3, 2, 2, 2}),
                  {.stride = {i[0], 1}, .padding = Padding({{i[1], i[2]}, {0, 0}}), .dilation = i[3]});
  });
  sweep("conv3d", {1, 0, 1, 1}, [&](const Integers& i) {
    return conv3d(ones({1, 2, 4, 3, 3}), ones({3, 2, 2, 2, 2}),
                  {.stride = {i[0], i[3], 1}, .padding = {i[1], 1, 0}, .dilation = i[2]});
  });
  for (const char* implementation : {"unfold", "direct", "reference"})
    sweep("conv2d", {1, 1, 1}, [&](const Integers& i) {
      return conv2d(ones({1, 2, 4, 5}).set_requires_grad(), ones({2, 2, 2, 2}).set_requires_grad(),
                    {.stride = i[0], .padding = i[1], .dilation = i[2], .implementation = implementation});
    });
  sweep("conv_transpose1d", {1, 0, 0, 1, 1}, [&](const Integers& i) {
    return conv_transpose1d(
        x, w, {},
        {.stride = i[0], .padding = i[1], .output_padding = i[2], .dilation = i[3], .groups = i[4]});
  });
  sweep("conv_transpose2d", {1, 0, 0}, [&](const Integers& i) {
    return conv_transpose2d(ones({1, 2, 4, 5}), ones({2, 2, 2, 2}), {},
                            {.stride = i[0], .padding = Padding({{i[1], i[2]}, {0, 0}})});
  });
  sweep("conv_transpose3d", {2, 0, 1}, [&](const Integers& i) {
    return conv_transpose3d(ones({1, 2, 2, 2, 2}), ones({2, 2, 2, 2, 2}), {},
                            {.stride = i[0], .padding = i[1], .output_padding = i[2]});
  });
  sweep("conv_forward", {1, 0}, [&](const Integers& i) {
    return ops::conv_forward(x.detach(), w.detach(), {}, {.stride = i[0], .padding = i[1], .groups = 2});
  });
  sweep("conv_backward_input", {2, 4, 5, 1}, [&](const Integers& i) {
    return ops::conv_backward_input(ones({2, 4, 4}), w.detach(), {i[0], i[1], i[2]},
                                    {.stride = i[3], .groups = 2});
  });
  sweep("conv_backward_weight", {4, 2, 2, 1}, [&](const Integers& i) {
    return ops::conv_backward_weight(ones({2, 4, 4}), x.detach(), {i[0], i[1], i[2]},
                                     {.stride = i[3], .groups = 2});
  });
  sweep("conv_output_size", {5, 3, 1, 0, 0, 1},
        [](const Integers& i) { return ops::conv_output_size("conv", i[0], i[1], i[2], i[3], i[4], i[5]); });
  sweep("resolve_padding", {3, 1, 1},
        [](const Integers& i) { return ops::resolve_padding("conv", "same", {i[0]}, {i[1]}, {i[2]}); });
}

TEST_CASE("pools and resampling take integers from all over int64", "[limits]") {
  for (const int64_t rank : {3, 4, 5}) {
    for (const bool ceil_mode : {false, true}) {
      sweep_tensors("max_pool", rank, {2, 1, 0, 1}, [&](const Tensor& x, const Integers& i) {
        return max_pool(
            x,
            {.kernel_size = i[0], .stride = i[1], .padding = i[2], .dilation = i[3], .ceil_mode = ceil_mode});
      });
      sweep_tensors("avg_pool", rank, {2, 1, 0, 3}, [&](const Tensor& x, const Integers& i) {
        return avg_pool(x, {.kernel_size = i[0],
                            .stride = i[1],
                            .padding = i[2],
                            .ceil_mode = ceil_mode,
                            .divisor_override = i[3]});
      });
      sweep_tensors("avg_pool", rank, {2, 1, 0}, [&](const Tensor& x, const Integers& i) {
        return avg_pool(x, {.kernel_size = i[0], .stride = i[1], .padding = i[2], .ceil_mode = ceil_mode});
      });
    }
    sweep_tensors("lp_pool", rank, {2, 1}, [](const Tensor& x, const Integers& i) {
      return lp_pool(x, {.norm_type = 3, .kernel_size = i[0], .stride = i[1]});
    });
    sweep_tensors("max_pool_with_indices", rank, {2}, [](const Tensor& x, const Integers& i) {
      return max_pool_with_indices(x, {.kernel_size = i[0]}).values;
    });
    sweep_tensors("adaptive_max_pool", rank, {2}, [](const Tensor& x, const Integers& i) {
      return adaptive_max_pool(x, {.output_size = i[0]});
    });
    sweep_tensors("adaptive_avg_pool", rank, {2}, [](const Tensor& x, const Integers& i) {
      return adaptive_avg_pool(x, {.output_size = i[0]});
    });
    sweep_tensors("interpolate", rank, {2}, [](const Tensor& x, const Integers& i) {
      return interpolate(x, {.size = i[0], .mode = Interpolation::linear});
    });
    sweep("grid_sample", {0}, [](const Integers& i) {
      return grid_sample(ones({1, 1, 2, 3}), full({1, 1, 1, 2}, i[0], {.dtype = float32}));
    });
    sweep("affine_grid", {2, 3, 2, 2}, [](const Integers& i) {
      return affine_grid(ones({2, 2, 3}), {i[0], i[1], i[2], i[3]});
    });
    sweep_tensors("interpolate, antialias", rank, {2}, [](const Tensor& x, const Integers& i) {
      return interpolate(x, {.size = i[0], .mode = Interpolation::cubic, .antialias = true});
    });
    sweep_tensors("interpolate by a factor", rank, {2}, [](const Tensor& x, const Integers& i) {
      return interpolate(x, {.scale_factor = static_cast<double>(i[0])});
    });
  }
  sweep("max_unpool2d", {2, 1, 0, 3, 2}, [](const Integers& i) {
    const Tensor x = ones({1, 1, 2, 2}), index = full({1, 1, 2, 2}, i[4], {.dtype = int64});
    const MaxUnpoolOptions options{.kernel_size = i[0], .stride = i[1], .padding = i[2], .output_size = i[3]};
    (void)max_unpool2d(x, index, options);
    (void)nn::MaxUnpool2d{options}.forward(x, index);
    return max_unpool(x, index, options);
  });
  sweep("max_unpool1d", {2, 1, 1}, [](const Integers& i) {
    const Tensor index = full({1, 1, 2}, i[2], {.dtype = int64});
    (void)max_unpool1d(ones({1, 1, 2}), index, {.kernel_size = i[0], .stride = i[1]});
    return nn::MaxUnpool1d{{.kernel_size = i[0], .stride = i[1]}}.forward(ones({1, 1, 2}), index);
  });
  sweep("max_unpool3d", {2, 1}, [](const Integers& i) {
    const Tensor x = ones({1, 1, 2, 2, 2}), index = zeros({1, 1, 2, 2, 2}, int64);
    (void)max_unpool3d(x, index, {.kernel_size = i[0], .stride = i[1]});
    return nn::MaxUnpool3d{{.kernel_size = i[0], .stride = i[1]}}.forward(x, index);
  });
  const auto one = [](const char* name, int64_t rank, auto max, auto average, auto power, auto most,
                      auto even) {
    sweep_tensors(name, rank, {2, 1}, [&](const Tensor& x, const Integers& i) {
      return max(x, MaxPoolOptions{.kernel_size = i[0], .stride = i[1]});
    });
    sweep_tensors(name, rank, {2, 1}, [&](const Tensor& x, const Integers& i) {
      return average(x, AvgPoolOptions{.kernel_size = i[0], .stride = i[1]});
    });
    sweep_tensors(name, rank, {2, 1, 1}, [&](const Tensor& x, const Integers& i) {
      return average(x, AvgPoolOptions{.kernel_size = i[0], .padding = i[1], .dilation = i[2]});
    });
    sweep_tensors(name, rank, {2, 1}, [&](const Tensor& x, const Integers& i) {
      return power(x, LpPoolOptions{.norm_type = 2, .kernel_size = i[0], .stride = i[1]});
    });
    sweep_tensors(name, rank, {2}, [&](const Tensor& x, const Integers& i) {
      return most(x, AdaptivePoolOptions{.output_size = i[0]});
    });
    sweep_tensors(name, rank, {2}, [&](const Tensor& x, const Integers& i) {
      return even(x, AdaptivePoolOptions{.output_size = i[0]});
    });
  };
  // max_pool1d( avg_pool1d( lp_pool1d( adaptive_max_pool1d( adaptive_avg_pool1d( and so on
  one("pools of 1 dimension", 3, max_pool1d, avg_pool1d, lp_pool1d, adaptive_max_pool1d, adaptive_avg_pool1d);
  one("pools of 2 dimensions", 3, max_pool2d, avg_pool2d, lp_pool2d, adaptive_max_pool2d,
      adaptive_avg_pool2d);
  one("pools of 3 dimensions", 4, max_pool3d, avg_pool3d, lp_pool3d, adaptive_max_pool3d,
      adaptive_avg_pool3d);
}

TEST_CASE("normalisations, losses and dropout take integers from all over int64", "[limits]") {
  for (const int64_t rank : {2, 3, 4}) {
    sweep_tensors("group_norm", rank, {2}, [](const Tensor& x, const Integers& i) {
      return group_norm(x, {}, {}, {.num_groups = i[0]});
    });
    sweep_tensors("rms_norm", rank, {1, 1}, [](const Tensor& x, const Integers& i) {
      return rms_norm(x, {}, {.normalized_shape = {i[0], i[1]}});
    });
    sweep_tensors("local_response_norm", rank, {2},
                  [](const Tensor& x, const Integers& i) { return local_response_norm(x, {.size = i[0]}); });
    sweep_tensors("normalize", rank, {1},
                  [](const Tensor& x, const Integers& i) { return normalize(x, {.dim = i[0]}); });
    sweep_tensors("CosineSimilarity", rank, {1}, [](const Tensor& x, const Integers& i) {
      return nn::CosineSimilarity{{.dim = i[0]}}.forward(x, x);
    });
    sweep_tensors("cosine_similarity", rank, {1},
                  [](const Tensor& x, const Integers& i) { return cosine_similarity(x, x, {.dim = i[0]}); });
    sweep_tensors("layer_norm", rank, {1, 1}, [](const Tensor& x, const Integers& i) {
      return layer_norm(x, {}, {}, {.normalized_shape = {i[0], i[1]}});
    });
    sweep_tensors("layer_norm", rank, {1}, [](const Tensor& x, const Integers& i) {
      return layer_norm(x, {}, {}, {.normalized_shape = {i[0]}});
    });
    sweep_tensors("batch_norm", rank, {0}, [](const Tensor& x, const Integers& i) {
      const int64_t channels = x.size(1) < 100 ? x.size(1) : 1;
      return batch_norm(x, {}, {}, zeros({channels}), ones({channels}),
                        {.training = true, .momentum = {}, .num_batches_tracked = scalar(i[0], int64)});
    });
    sweep_tensors("instance_norm", rank, {},
                  [](const Tensor& x, const Integers&) { return instance_norm(x, {}, {}, {}, {}); });
    sweep_tensors("dropout", rank, {}, [](const Tensor& x, const Integers&) { return dropout(x, 0.5); });
  }
  const Tensor x = ones({2, 4});
  sweep("batch_norm_forward", {0}, [&](const Integers& i) {
    const BatchNormOptions options{
        .training = true, .momentum = {}, .num_batches_tracked = scalar(i[0], int64)};
    return ops::batch_norm_forward(x, {}, {}, zeros({4}), ones({4}), options).y;
  });
  sweep("batch_norm_backward", {}, [&](const Integers&) {
    const Tensor s = ones({4}, {.dtype = float64});
    return ops::batch_norm_backward(x, x, {}, {}, s, s, {.training = true}).x;
  });
  sweep("group_norm_forward", {2},
        [&](const Integers& i) { return ops::group_norm_forward(x, {}, {}, {.num_groups = i[0]}).y; });
  sweep("group_norm_backward", {2}, [&](const Integers& i) {
    const Tensor s = ones({2, 2}, {.dtype = float64});
    return ops::group_norm_backward(x, x, {}, s, s, {.num_groups = i[0]}).x;
  });
  sweep("cross_entropy", {1, -100, 2}, [&](const Integers& i) {
    return cross_entropy(ones({2, 4}).set_requires_grad(), tensor({i[0], i[2]}), {.ignore_index = i[1]});
  });
  sweep("nll_loss", {1, -100, 2}, [&](const Integers& i) {
    return nll_loss(ones({2, 4}).set_requires_grad(), tensor({i[0], i[2]}), {.ignore_index = i[1]});
  });
  sweep("nll_losses", {1, -100}, [&](const Integers& i) {
    return nll_losses(x, tensor({i[0], int64_t{0}}), {}, i[1]);
  });
  sweep("class_cross_entropies", {1, -100}, [&](const Integers& i) {
    return class_cross_entropies(x, tensor({i[0], int64_t{0}}), {}, {.ignore_index = i[1]});
  });
  sweep("cross_entropy_forward", {1, -100}, [&](const Integers& i) {
    return ops::cross_entropy_forward(x, tensor({i[0], int64_t{0}}), {}, {.ignore_index = i[1]}).losses;
  });
  sweep("cross_entropy_backward", {1, -100}, [&](const Integers& i) {
    return ops::cross_entropy_backward(ones({2}), x, ones({2}), tensor({i[0], int64_t{0}}), {},
                                       {.ignore_index = i[1]});
  });
  sweep("nll_forward", {1, -100}, [&](const Integers& i) {
    return ops::nll_forward(x, tensor({i[0], int64_t{0}}), {}, i[1]);
  });
  sweep("nll_backward", {1, -100}, [&](const Integers& i) {
    return ops::nll_backward(ones({2}), x, tensor({i[0], int64_t{0}}), {}, i[1]);
  });
  sweep("class_shares", {1, -100}, [&](const Integers& i) {
    return ops::class_shares(x, tensor({i[0], int64_t{0}}), {}, {.ignore_index = i[1]});
  });
  sweep("target_weights", {1, -100}, [&](const Integers& i) {
    return ops::target_weights(x, tensor({i[0], int64_t{0}}), ones({4}), i[1]);
  });
}
