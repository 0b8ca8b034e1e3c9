#include "pleat/tests/cuda_double/ptx/count_rows.h"

#include <memory>

#include "pleat/pleat.h"

namespace pleat::test {
namespace {

/// Of a function of one tensor.
template <class F>
std::function<Tensors(const Tensors&)> unary(F f) {
  return [f](const Tensors& x) { return Tensors{f(x[0])}; };
}

const Shape image_shape = {4, 32, 24, 24}, row_shape = {96, 1000};

/// A convolution [images, channels, size, size] by 3x3 filters, as matrices of the windows. What is counted
/// is the making of these (one for the result, two for the gradients): cuBLAS multiplies them.
CountedCall unfolded(const Setting& s, int64_t images, int64_t channels, int64_t size, int64_t filters) {
  const auto run = [](const Tensors& x) {
    return Tensors{conv2d(x[0], x[1], {}, {.padding = 1, .implementation = "unfold"})};
  };
  const double pixels = static_cast<double>(images * size * size);
  const auto bytes = static_cast<double>(size_of(s.dtype));
  const double x = pixels * static_cast<double>(channels), y = pixels * static_cast<double>(filters);
  return {{s.images({images, channels, size, size}), s.images({filters, channels, 3, 3})},
          run,
          2,
          {9 * x, 9 * (x + y)},
          {10 * x * bytes, 10 * (x + y) * bytes}};
}

/// A convolution by 3x3 (x3) filters that is not its own transposed one, with a bias. What is moved least: x
/// is read and U written, which has `columns` elements; backward, that twice, the one for dx being read as
/// sums of float32.
CountedCall unfolded_by(const Setting& s, const Shape& x, const Shape& w, const ConvOptions& options,
                        double columns) {
  const auto run = [options](const Tensors& t) {
    ConvOptions by_unfold = options;
    by_unfold.implementation = "unfold";
    return Tensors{t[0].rank() == 5 ? conv3d(t[0], t[1], t[2], by_unfold)
                                    : conv2d(t[0], t[1], t[2], by_unfold)};
  };
  const Tensor images = s.images(x);
  const auto bytes = static_cast<double>(size_of(s.dtype)), elements = static_cast<double>(images.numel());
  return {{images, s.images(w), s.rows({w[0]})},
          run,
          3,
          {columns, 2 * columns},
          {(elements + columns) * bytes, (2 * elements + columns) * bytes + columns * 4}};
}

/// `states`: bytes of an element's state, which is read and written as the parameter is.
template <class Optimizer, class Options>
CountedCall step_of(const Setting& s, const Options& options, double states) {
  const Tensor p = s.rows({100'000});
  p.set_requires_grad(true);
  p.set_grad(s.rows({100'000}));
  auto optimizer = std::make_shared<Optimizer>(Tensors{p}, options);
  optimizer->step();  // which makes its states
  Tensors all = {p, p.grad()};
  const auto run = [optimizer](const Tensors& x) { return optimizer->step(), Tensors{x[0]}; };
  return {all, run, 0, {}, {1e5 * (3. * static_cast<double>(size_of(s.dtype)) + 2 * states)}};
}

}  // namespace

Tensor Setting::images(const Shape& shape) const {
  return to_format(randn(shape), format).to(dtype).to("cuda");
}
Tensor Setting::rows(const Shape& shape) const { return randn(shape).to(dtype).to("cuda"); }

const std::vector<Row>& rows_to_count() {
  static const std::vector<Row> all = {
      {"add", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.images(image_shape)},
                            [](const Tensors& x) { return Tensors{x[0] + x[1]}; },
                            2};
       }},
      {"add of a bias", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.rows({32, 1, 1})},
                            [](const Tensors& x) { return Tensors{x[0] + x[1]}; },
                            2};
       }},
      {"add of a row", false,
       [](const Setting& s) {
         return CountedCall{
             {s.rows(row_shape), s.rows({1000})}, [](const Tensors& x) { return Tensors{x[0] + x[1]}; }, 2};
       }},
      {"multiply by a column", false,
       [](const Setting& s) {
         return CountedCall{
             {s.rows(row_shape), s.rows({96, 1})}, [](const Tensors& x) { return Tensors{x[0] * x[1]}; }, 2};
       }},
      {"add of a part", false,
       [](const Setting& s) {
         const Tensor x = s.rows({96, 2000});
         return CountedCall{{narrow(x, 1, 0, 1000), narrow(x, 1, 1000, 1000)},
                            [](const Tensors& y) { return Tensors{y[0] + y[1]}; },
                            0};
       }},
      {"relu", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return relu(x); })};
       }},
      {"gelu", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return gelu(x); })};
       }},
      {"silu", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return silu(x); })};
       }},
      {"where", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), s.rows(row_shape), s.rows(row_shape) > 0},
                            [](const Tensors& x) { return Tensors{where(x[2], x[0], x[1])}; },
                            2};
       }},
      {"cast to float32", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)},
                            unary([](auto& x) { return x.to(x.dtype() == float32 ? float16 : float32); })};
       }},
      {"to the other format", true,
       [](const Setting& s) {
         const MemoryFormat other =
             s.format == MemoryFormat::contiguous ? MemoryFormat::channels_last : MemoryFormat::contiguous;
         return CountedCall{{s.images(image_shape)}, unary([other](auto& x) { return to_format(x, other); })};
       }},
      {"transposed copy", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)},
                            unary([](auto& x) { return transpose(x, 0, 1).contiguous(); })};
       }},
      {"cat", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.images(image_shape)},
                            [](const Tensors& x) { return Tensors{cat(x, 1)}; },
                            2};
       }},
      {"pad", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return pad(x, {1, 1, 1, 1}); })};
       }},
      {"pad, reflecting", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return pad(x, {1, 1, 1, 1}, {.mode = PadMode::reflect});
                            })};
       }},
      {"sum of all", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return sum(x); })};
       }},
      {"sum over images", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return sum(x, {0, 2, 3}); })};
       }},
      {"mean of rows", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return mean(x, -1); })};
       }},
      {"mean of columns", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return mean(x, 0); })};
       }},
      {"max of rows", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return max(x, -1); })};
       }},
      {"var of rows", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return var(x, -1); })};
       }},
      {"cumsum of rows", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return cumsum(x, -1); })};
       }},
      {"softmax of rows", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return softmax(x, -1); })};
       }},
      {"softmax of rows of 10", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({9600, 10})}, unary([](auto& x) { return softmax(x, -1); })};
       }},
      {"log_softmax of channels", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return log_softmax(x, 1); })};
       }},
      {"softmax of channels", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) { return softmax(x, 1); })};
       }},
      {"batch_norm", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), ones({32}).to("cuda"), zeros({32}).to("cuda")},
                            [](const Tensors& x) {
                              return Tensors{batch_norm(x[0], x[1], x[2], {}, {},
                                                        {.training = true, .implementation = "native"})};
                            },
                            3};
       }},
      {"batch_norm after a residual, relu", true,
       [](const Setting& s) {
         const Tensor parameter = ones({32}).to("cuda");
         return CountedCall{
             {s.images(image_shape), s.images(image_shape), parameter, parameter},
             [](const Tensors& x) {
               return Tensors{batch_norm(
                   x[0], x[2], x[3], {}, {},
                   {.training = true, .residual = x[1], .bounds = {.min = 0}, .implementation = "native"})};
             },
             4};
       }},
      {"instance_norm", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.rows({32}), s.rows({32})},
                            [](const Tensors& x) { return Tensors{instance_norm(x[0], x[1], x[2], {}, {})}; },
                            3};
       }},
      {"group_norm", true,
       [](const Setting& s) {
         return CountedCall{
             {s.images(image_shape), s.rows({32}), s.rows({32})},
             [](const Tensors& x) { return Tensors{group_norm(x[0], x[1], x[2], {.num_groups = 8})}; },
             3};
       }},
      {"layer_norm", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), s.rows({1000}), s.rows({1000})},
                            [](const Tensors& x) {
                              return Tensors{layer_norm(x[0], x[1], x[2], {.normalized_shape = 1000})};
                            },
                            3};
       }},
      {"rms_norm", false,
       [](const Setting& s) {
         return CountedCall{
             {s.rows(row_shape), s.rows({1000})},
             [](const Tensors& x) { return Tensors{rms_norm(x[0], x[1], {.normalized_shape = 1000})}; },
             2};
       }},
      {"max_pool2d of 2", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return max_pool2d(x, {.kernel_size = 2}); })};
       }},
      {"max_pool2d of 3, stride 2", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
                            })};
       }},
      {"avg_pool2d of 2", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return avg_pool2d(x, {.kernel_size = 2}); })};
       }},
      {"avg_pool2d of 3, stride 1", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return avg_pool2d(x, {.kernel_size = 3, .stride = 1, .padding = 1});
                            })};
       }},
      {"lp_pool2d of 2", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return lp_pool2d(x, {.norm_type = 2, .kernel_size = 2}); })};
       }},
      {"max_unpool2d of 2", true,
       [](const Setting& s) {
         const auto [values, places] = max_pool_with_indices(s.images(image_shape), {.kernel_size = 2});
         return CountedCall{{values, places}, [](const Tensors& x) {
                              return Tensors{max_unpool2d(x[0], x[1], {.kernel_size = 2})};
                            }};
       }},
      {"adaptive_max_pool2d to 7", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return adaptive_max_pool2d(x, {.output_size = 7}); })};
       }},
      {"adaptive_avg_pool2d to 7", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return adaptive_avg_pool2d(x, {.output_size = 7}); })};
       }},
      {"adaptive_avg_pool2d to 1", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return adaptive_avg_pool2d(x, {.output_size = 1}); })};
       }},
      {"interpolate, nearest", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)},
                            unary([](auto& x) { return interpolate(x, {.scale_factor = 2}); })};
       }},
      {"interpolate, linear", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return interpolate(x, {.scale_factor = 2, .mode = Interpolation::linear});
                            })};
       }},
      {"interpolate, cubic", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return interpolate(x, {.scale_factor = 2, .mode = Interpolation::cubic});
                            })};
       }},
      {"interpolate, area, by half", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape)}, unary([](auto& x) {
                              return interpolate(x, {.scale_factor = 0.5, .mode = Interpolation::area});
                            })};
       }},
      {"grid_sample", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.rows({4, 24, 24, 2})},
                            [](const Tensors& x) { return Tensors{grid_sample(x[0], x[1])}; },
                            2};
       }},
      {"roi_align to 7", true,
       [](const Setting& s) {
         const Tensor boxes =
             from_vector(std::vector<float>{0, 1, 2, 20, 21, 1, 3, 4, 12, 23, 3, 0, 0, 23, 12}, {3, 5})
                 .to(s.dtype)
                 .to("cuda");
         return CountedCall{{s.images(image_shape), boxes}, [](const Tensors& x) {
                              return Tensors{roi_align(x[0], x[1], {.output_size = 7})};
                            }};
       }},
      {"unfold of 3", false,
       [](const Setting& s) {
         return CountedCall{{s.images({2, 16, 24, 24})},
                            unary([](auto& x) { return unfold(x, {.kernel_size = 3, .padding = 1}); })};
       }},
      {"conv2d by unfold", true, [](const Setting& s) { return unfolded(s, 4, 16, 24, 32); }},
      {"conv2d of 3 channels by unfold", true, [](const Setting& s) { return unfolded(s, 16, 3, 32, 16); }},
      {"conv2d of 512 patches by unfold", true, [](const Setting& s) { return unfolded(s, 512, 32, 4, 32); }},
      {"conv2d of stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {8, 32, 32, 32}, {32, 32, 3, 3}, {.stride = 2, .padding = 1},
                            8. * 32 * 9 * 256);
       }},
      {"conv2d of 4 groups and stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {8, 32, 32, 32}, {32, 8, 3, 3}, {.stride = 2, .padding = 1, .groups = 4},
                            8. * 32 * 9 * 256);
       }},
      {"conv3d of stride 2 by unfold", true,
       [](const Setting& s) {
         return unfolded_by(s, {2, 8, 16, 16, 16}, {16, 8, 3, 3, 3}, {.stride = 2, .padding = 1},
                            2. * 8 * 27 * 512);
       }},
      {"depthwise conv2d", true,
       [](const Setting& s) {
         return CountedCall{{s.images(image_shape), s.images({32, 1, 3, 3})},
                            [](const Tensors& x) {
                              return Tensors{conv2d(
                                  x[0], x[1], {}, {.padding = 1, .groups = 32, .implementation = "direct"})};
                            },
                            2};
       }},
      {"depthwise conv2d of stride 2", true,
       [](const Setting& s) {
         return CountedCall{
             {s.images(image_shape), s.images({32, 1, 3, 3}), s.rows({32})},
             [](const Tensors& x) {
               return Tensors{conv2d(x[0], x[1], x[2],
                                     {.stride = 2, .padding = 1, .groups = 32, .implementation = "direct"})};
             },
             3};
       }},
      {"cross_entropy", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), randint(0, 1000, {96}).to("cuda")}, [](const Tensors& x) {
                              return Tensors{cross_entropy(x[0], x[1], {.check_target = false})};
                            }};
       }},
      {"cross_entropy of pixels", true,
       [](const Setting& s) {
         return CountedCall{
             {s.images(image_shape), randint(0, 32, {4, 24, 24}).to("cuda")},
             [](const Tensors& x) { return Tensors{cross_entropy(x[0], x[1], {.check_target = false})}; }};
       }},
      {"cross_entropy of 10 classes", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({9600, 10}), randint(0, 10, {9600}).to("cuda")}, [](const Tensors& x) {
                              return Tensors{cross_entropy(x[0], x[1], {.check_target = false})};
                            }};
       }},
      {"nll_loss", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), randint(0, 1000, {96}).to("cuda")},
                            [](const Tensors& x) { return Tensors{nll_loss(x[0], x[1])}; }};
       }},
      {"mse_loss", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), s.rows(row_shape)},
                            [](const Tensors& x) { return Tensors{mse_loss(x[0], x[1])}; }};
       }},
      {"bce_with_logits", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({60, 1000}), s.rows({60, 1000})},
                            [](const Tensors& x) { return Tensors{bce_with_logits(x[0], x[1])}; }};
       }},
      {"binary_cross_entropy", false,
       [](const Setting& s) {
         return CountedCall{{sigmoid(s.rows({60, 1000})), sigmoid(s.rows({60, 1000}))},
                            [](const Tensors& x) { return Tensors{binary_cross_entropy(x[0], x[1])}; }};
       }},
      {"sigmoid_focal_loss, mean", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({60, 1000}), sigmoid(s.rows({60, 1000}))}, [](const Tensors& x) {
                              return Tensors{sigmoid_focal_loss(x[0], x[1], {.reduction = Reduction::mean})};
                            }};
       }},
      {"smooth_l1_loss", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape), s.rows(row_shape)},
                            [](const Tensors& x) { return Tensors{smooth_l1_loss(x[0], x[1])}; }};
       }},
      {"kl_div", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({60, 1000}), exp(s.rows({60, 1000}))},
                            [](const Tensors& x) { return Tensors{kl_div(x[0], x[1])}; }};
       }},
      {"embedding", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({500, 64}), randint(0, 500, {1500}).to("cuda")},
                            [](const Tensors& x) { return Tensors{embedding(x[1], x[0])}; }};
       }},
      {"embedding, half of it padding", false,
       [](const Setting& s) {
         return CountedCall{{s.rows({500, 64}), clamp(randint(-500, 500, {1500}), 0, 499).to("cuda")},
                            [](const Tensors& x) { return Tensors{embedding(x[1], x[0])}; }};
       }},
      {"dropout", false,
       [](const Setting& s) {
         return CountedCall{{s.rows(row_shape)}, unary([](auto& x) { return dropout(x, 0.5); })};
       }},
      {"SGD with momentum", false,
       [](const Setting& s) {
         return step_of<optim::SGD>(s, optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, 4);
       }},
      {"Adam", false, [](const Setting& s) { return step_of<optim::Adam>(s, optim::AdamOptions{}, 8); }},
  };
  return all;
}

}  // namespace pleat::test
