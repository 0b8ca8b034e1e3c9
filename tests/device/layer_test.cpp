// Convolution, pooling, normalisation, matrix products, windows and resampling on the other device.

#include "pleat/autograd/functions/conv.h"
#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/functions/interpolate.h"
#include "pleat/autograd/functions/matmul.h"
#include "pleat/autograd/functions/norm.h"
#include "pleat/autograd/functions/pool.h"
#include "pleat/autograd/functions/unfold.h"
#include "pleat/ops/conv/tune/tune.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using namespace pleat::test;

namespace {

Outputs both(const MaxPoolWithIndices& result) { return Tensors{result.values, result.indices}; }

void agrees_on(const Shape& shape, const std::function<Outputs(const Tensor&)>& f) {
  agrees({normal(shape)}, [&](const Tensors& t) { return f(t[0]); });
}

const Shape line{2, 3, 9};
const Shape image{2, 3, 7, 6};
const Shape volume{1, 2, 5, 4, 3};

}  // namespace

TEST_CASE("device: conv1d", "[device]") {
  agrees({normal(line), normal({4, 3, 3}, 2), normal({4}, 3)},
         [](const Tensors& t) { return conv1d(t[0], t[1], t[2], {.stride = 2, .padding = 1}); });
}
TEST_CASE("device: conv2d", "[device]") {
  agrees({normal(image), normal({4, 3, 3, 3}, 2), normal({4}, 3)},
         [](const Tensors& t) { return conv2d(t[0], t[1], t[2], {.padding = 1}); });
  agrees({normal({2, 4, 5, 5}), normal({6, 2, 3, 2}, 2)}, [](const Tensors& t) {
    return conv2d(t[0], t[1],
                  {.stride = {2, 1}, .padding = {{0, 1}, {1, 0}}, .dilation = {1, 2}, .groups = 2});
  });
  agrees({normal(image), normal({3, 1, 3, 3}, 2)},
         [](const Tensors& t) { return conv2d(t[0], t[1], {.padding = 1, .groups = 3}); });
  agrees({normal(image), normal({4, 3, 1, 1}, 2)}, [](const Tensors& t) { return conv2d(t[0], t[1]); });
}
TEST_CASE("device: conv3d", "[device]") {
  agrees({normal(volume), normal({3, 2, 3, 3, 3}, 2), normal({3}, 3)},
         [](const Tensors& t) { return conv3d(t[0], t[1], t[2], {.padding = 1}); });
  agrees({normal(volume), normal({3, 2, 1, 3, 3}, 2)}, [](const Tensors& t) {
    return conv3d(t[0], t[1], {.padding = {0, 1, 1}});
  });
}
TEST_CASE("device: conv_transpose1d", "[device]") {
  agrees({normal({2, 3, 5}), normal({3, 2, 3}, 2), normal({2}, 3)}, [](const Tensors& t) {
    return conv_transpose1d(t[0], t[1], t[2], {.stride = 2, .padding = 1, .output_padding = 1});
  });
}
TEST_CASE("device: conv_transpose2d", "[device]") {
  agrees({normal({2, 3, 4, 5}), normal({3, 2, 3, 3}, 2), normal({2}, 3)},
         [](const Tensors& t) { return conv_transpose2d(t[0], t[1], t[2], {.stride = 2, .padding = 1}); });
}
TEST_CASE("device: conv_transpose3d", "[device]") {
  agrees({normal({1, 2, 2, 3, 2}), normal({2, 2, 2, 3, 3}, 2), normal({2}, 3)}, [](const Tensors& t) {
    return conv_transpose3d(t[0], t[1], t[2], {.stride = {1, 2, 1}});
  });
}
TEST_CASE("device: a tuned convolution", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const Shape input{2, 5, 9, 7};  // of no other test
  const Tensors x{normal(input), normal({4, 5, 3, 3}, 2), normal({4}, 3)};
  const auto on = [&](Device device) {
    Tensors there;
    for (const Tensor& t : x) there.push_back(ops::to_device(ops::cast(t, float32), device));
    return there;
  };
  {
    const Device other(DeviceType::cuda);
    const Tensors there = on(other);
    const auto timings =
        ops::tune_conv(there[0], there[1], there[2], {.padding = 1}, {.warmups = 1, .samples = 2});
    REQUIRE(timings.size() >= 3);  // of each pass
    for (const ops::ConvTiming& timing : timings) {
      INFO(describe(timing));
      CHECK((timing.milliseconds > 0 || !timing.failure.empty()));
    }
  }
  agrees(x, [](const Tensors& t) {
    const ConvPolicy guard{{.benchmark = true}};
    return conv2d(t[0], t[1], t[2], {.padding = 1});
  });
}
TEST_CASE("device: a convolution that cannot be is refused in the same words", "[device]") {
  agrees_in_value({normal(image), normal({4, 2, 3, 3}, 2)},
                  [](const Tensors& t) { return conv2d(t[0], t[1], {.padding = 1}); });
}

TEST_CASE("device: max_pool", "[device]") {
  const MaxPoolOptions options{.kernel_size = 3, .stride = 2, .padding = 1};
  agrees_on(line, [&](const Tensor& x) { return Tensors{max_pool(x, options), max_pool1d(x, options)}; });
  agrees_on(image, [&](const Tensor& x) { return max_pool2d(x, options); });
  agrees_on(volume, [&](const Tensor& x) { return max_pool3d(x, options); });
  agrees_on(image, [&](const Tensor& x) { return both(max_pool_with_indices(x, options)); });
}
TEST_CASE("device: avg_pool", "[device]") {
  const AvgPoolOptions options{
      .kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false};
  agrees_on(line, [&](const Tensor& x) { return Tensors{avg_pool(x, options), avg_pool1d(x, options)}; });
  agrees_on(image, [&](const Tensor& x) { return avg_pool2d(x, options); });
  agrees_on(volume, [&](const Tensor& x) { return avg_pool3d(x, options); });
}
TEST_CASE("device: lp_pool", "[device]") {
  const LpPoolOptions options{.norm_type = 2, .kernel_size = 3, .stride = 2};
  agrees_on(line, [&](const Tensor& x) { return Tensors{lp_pool(x, options), lp_pool1d(x, options)}; });
  agrees_on(image, [&](const Tensor& x) { return lp_pool2d(x, options); });
  agrees_on(volume, [&](const Tensor& x) { return lp_pool3d(x, options); });
}
TEST_CASE("device: adaptive_max_pool", "[device]") {
  const AdaptivePoolOptions options{.output_size = 2};
  agrees_on(line, [&](const Tensor& x) {
    return Tensors{adaptive_max_pool(x, options), adaptive_max_pool1d(x, options)};
  });
  agrees_on(image, [&](const Tensor& x) { return adaptive_max_pool2d(x, options); });
  agrees_on(volume, [&](const Tensor& x) { return adaptive_max_pool3d(x, options); });
}
TEST_CASE("device: adaptive_avg_pool", "[device]") {
  const AdaptivePoolOptions options{.output_size = 2};
  agrees_on(line, [&](const Tensor& x) {
    return Tensors{adaptive_avg_pool(x, options), adaptive_avg_pool1d(x, options)};
  });
  agrees_on(image, [&](const Tensor& x) { return adaptive_avg_pool2d(x, options); });
  agrees_on(volume, [&](const Tensor& x) { return adaptive_avg_pool3d(x, options); });
}

TEST_CASE("device: batch_norm", "[device]") {
  for (const bool training : {true, false})
    for (const Shape& shape : {line, image, Shape{2, 3, 3, 2, 4}}) {
      CAPTURE(training, to_string(shape));
      agrees({normal(shape), normal({3}, 2), normal({3}, 3)}, [&](const Tensors& t) {
        const Tensor mean = constant(normal({3}, 4), t[1]);
        const Tensor variance = constant(uniform({3}, 0.5, 2, 5), t[1]);
        const Tensor y = batch_norm(t[0], t[1], t[2], mean, variance, {.training = training});
        const Tensor cut = batch_norm(t[0], t[1], t[2], mean, variance, {.training = training, .relu = true});
        return Tensors{y, cut, mean, variance};  // training changes the running statistics in place
      });
    }
}
TEST_CASE("device: group_norm", "[device]") {
  agrees({normal({2, 6, 3, 4}), normal({6}, 2), normal({6}, 3)},
         [](const Tensors& t) { return group_norm(t[0], t[1], t[2], {.num_groups = 3}); });
}
TEST_CASE("device: instance_norm", "[device]") {
  agrees({normal(image), normal({3}, 2), normal({3}, 3)},
         [](const Tensors& t) { return instance_norm(t[0], t[1], t[2], {}, {}); });
}
TEST_CASE("device: layer_norm", "[device]") {
  agrees({normal({4, 3, 5}), normal({3, 5}, 2), normal({3, 5}, 3)}, [](const Tensors& t) {
    return layer_norm(t[0], t[1], t[2], {.normalized_shape = Shape{3, 5}});
  });
}

TEST_CASE("device: matmul", "[device]") {
  agrees({normal({4, 5}), normal({5, 3}, 2)}, [](const Tensors& t) { return matmul(t[0], t[1]); });
  agrees({normal({2, 3, 4, 5}), normal({3, 5, 2}, 2)}, [](const Tensors& t) { return matmul(t[0], t[1]); });
  agrees({normal({5}), normal({5}, 2)}, [](const Tensors& t) { return matmul(t[0], t[1]); });
  agrees({normal({2, 4, 5}), normal({5}, 2)}, [](const Tensors& t) { return matmul(t[0], t[1]); });
  agrees_in_value({integers({4, 5}, -5, 5), integers({5, 3}, -5, 5)},
                  [](const Tensors& t) { return matmul(t[0], t[1]); });
}
TEST_CASE("device: addmm", "[device]") {
  agrees({normal({3}), normal({4, 5}, 2), normal({5, 3}, 3)},
         [](const Tensors& t) { return addmm(t[0], t[1], t[2], {.beta = 0.5, .alpha = 2}); });
}
TEST_CASE("device: linear", "[device]") {
  agrees({normal({2, 4, 5}), normal({3, 5}, 2), normal({3}, 3)},
         [](const Tensors& t) { return linear(t[0], t[1], t[2]); });
}
TEST_CASE("device: einsum", "[device]") {
  agrees({normal({2, 4, 5}), normal({2, 3, 5}, 2), normal({3}, 3)}, [](const Tensors& t) {
    return einsum("bik,bjk,j->ij", {t[0], t[1], t[2]});
  });
}

TEST_CASE("device: unfold", "[device]") {
  const UnfoldOptions options{.kernel_size = 3, .stride = 2, .padding = 1};
  for (const Shape& shape : {line, image, volume})
    agrees_on(shape, [&](const Tensor& x) { return unfold(x, options); });
}
TEST_CASE("device: fold", "[device]") {
  agrees_on({2, 3 * 6, 16}, [](const Tensor& x) { return fold(x, {5, 6}, {.kernel_size = {2, 3}}); });
  agrees_on({2, 3 * 9, 9}, [](const Tensor& x) {
    return fold(x, {5, 6}, {.kernel_size = 3, .stride = 2, .padding = 1});
  });
}
TEST_CASE("device: interpolate", "[device]") {
  for (const Interpolation mode : {Interpolation::nearest, Interpolation::linear})
    for (const Shape& shape : {line, image, volume}) {
      agrees_on(shape, [&](const Tensor& x) { return interpolate(x, {.scale_factor = 1.7, .mode = mode}); });
      agrees_on(shape, [&](const Tensor& x) { return interpolate(x, {.size = 3, .mode = mode}); });
    }
  agrees_on(image, [](const Tensor& x) {
    return interpolate(x, {.size = {9, 4}, .mode = Interpolation::linear, .align_corners = true});
  });
}
