// A convolution in several precisions, and the same from pad, unfold, einsum and fold, piece by piece.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/measure.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t kernel_size = 3, padding = 1, filters = 16;

Shape spatial(const Tensor& x) { return Shape(x.shape().begin() + 2, x.shape().end()); }

struct Setting {
  const char* name;
  FastConvolution how;
};

std::vector<Setting> settings_for(const Tensor& x) {
  constexpr Precision full = Precision::highest, tf32 = Precision::high;
  std::vector<Setting> settings{{"convolution", {padding, Windows::none}},
                                {"fast, im2col", {padding, Windows::im2col}},
                                {"fast, one-hot filters", {padding, Windows::one_hot}}};
  if (x.device().is_cpu() || x.dtype() != float32) return settings;
  settings.insert(
      settings.end(),
      {{"convolution, TF32", {padding, Windows::none, tf32, full}},
       {"fast, im2col, TF32 in the product", {padding, Windows::im2col, full, tf32}},
       {"fast, one-hot filters, TF32 in the product", {padding, Windows::one_hot, full, tf32}},
       {"fast, one-hot filters, TF32 in the convolution", {padding, Windows::one_hot, tf32, full}},
       {"fast, one-hot filters, TF32 in both", {padding, Windows::one_hot, tf32, tf32}}});
  return settings;
}

void measure_problem(Compare& compare, const Shape& input, DType dtype) {
  manual_seed(1);
  const TensorOptions on{.device = compare.options.device};
  Shape weight{filters, input[1]};
  weight.resize(input.size(), kernel_size);
  const Tensor x = randn(input, on).to(dtype), w = (randn(weight, on) * 0.2).to(dtype);
  const Tensor bias = randn({filters}, on).to(dtype);
  const std::string problem = fmt::format("{}-D {}", input.size() - 2, dtype);
  const std::vector<Setting> settings = settings_for(x);
  std::vector<Way> ways;
  for (const Setting& one : settings) ways.push_back({one.name, [=] { return one.how(x, w, bias); }});
  const std::size_t first = compare.records.size();
  compare.measure(problem, ways, {forward});
  // After the first calls were timed.
  const Tensor exact =
      ops::conv_forward(x.to(float64), w.to(float64), bias.to(float64), {.padding = padding});
  for (std::size_t i = 0; i < ways.size(); ++i)
    compare.records[first + i].set_value("error", relative_error(ways[i].compute(), exact));
  // Each piece alone, on what the pieces before it have given.
  for (const auto& [name, how] : settings) {
    if (how.layout == Windows::none) continue;
    const Tensor windows = how.windows(x, w), columns = how.multiply(w, windows);
    compare.measure_pieces(problem + ", " + name,
                           {{"unfold", [=, how = how] { return how.windows(x, w); }},
                            {"einsum", [=, how = how] { return how.multiply(w, windows); }},
                            {"fold", [=, how = how] { return how.images(columns, x, w); }}},
                           {forward});
  }
}

}  // namespace

Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like) {
  const int64_t taps = count(kernel);
  Shape shape{channels * taps, 1};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const Tensor one_channel = eye(taps, {.dtype = like.dtype(), .device = like.device()});
  return reshape(repeat(one_channel, {channels, 1}), shape);
}

Tensor FastConvolution::windows(const Tensor& x, const Tensor& w) const {
  const Shape kernel = spatial(w);
  const Tensor padded = pad(x, std::vector<int64_t>(2 * kernel.size(), padding));
  if (layout == Windows::im2col) return unfold(padded, {.kernel_size = kernel});
  const ConvOptions options{
      .groups = x.size(1), .format = MemoryFormat::contiguous, .precision = convolution};
  return flatten(ops::conv_forward(padded, one_hot_filters(x.size(1), kernel, x), {}, options), 2);
}

Tensor FastConvolution::multiply(const Tensor& w, const Tensor& windows) const {
  return einsum("kr,nrl->nkl", {flatten(w, 1), windows}, {.precision = product});
}

Tensor FastConvolution::images(const Tensor& columns, const Tensor& x, const Tensor& w) const {
  Shape output = spatial(x);
  for (std::size_t d = 0; d < output.size(); ++d) output[d] += 2 * padding - spatial(w)[d] + 1;
  return fold(columns, output, {.kernel_size = 1});
}

Tensor FastConvolution::operator()(const Tensor& x, const Tensor& w, const Tensor& bias) const {
  if (layout == Windows::none)
    return ops::conv_forward(x, w, bias, {.padding = padding, .precision = convolution});
  Shape one_each(x.shape().size(), 1);
  one_each[1] = bias.size(0);
  return images(multiply(w, windows(x, w)), x, w) + reshape(bias, one_each);
}

void faster_convolution(Compare& compare) {
  const NoGrad guard;
  // As many elements in one and three dimensions as in two.
  const std::vector<Shape> inputs =
      compare.options.quick ? std::vector<Shape>{{1, 3, 96, 96}, {1, 3, 9216}, {1, 3, 16, 24, 24}}
                            : std::vector<Shape>{{1, 3, 1024, 1024}, {1, 3, 1048576}, {1, 3, 64, 128, 128}};
  compare.setup = {
      fmt::format("Inputs {}; {} filters of size {}, padding {}, bias; forward; \"fast\" is pad, unfold, "
                  "einsum and fold. "
                  "The error is that against float64.",
                  fmt::join(inputs, ", "), filters, kernel_size, padding)};
  if (compare.options.device.is_cpu())
    compare.setup.emplace_back("Precision settings change nothing on a CPU: TF32 has no rows here.");
  for (const Shape& input : inputs)
    for (const DType dtype : {float32, float16, bfloat16}) measure_problem(compare, input, dtype);
}

}  // namespace pleat::bench::ask
