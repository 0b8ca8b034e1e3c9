#include <algorithm>

#include <fmt/format.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t kernel_size = 3, layer_padding = 1, filters = 16;

Shape spatial(const Tensor& x) { return Shape(x.shape().begin() + 2, x.shape().end()); }

std::vector<Way> ways_of(const Tensor& x, const Tensor& w, const Tensor& bias) {
  std::vector<Way> ways;
  constexpr Precision full = Precision::highest, tf32 = Precision::high;
  const auto add = [&](const char* name, Windows windows, Precision convolution, Precision product) {
    ways.push_back(
        {name, [=] { return conv_fast(x, w, bias, layer_padding, windows, convolution, product); }});
  };
  add("convolution", Windows::none, full, full);
  add("fast, im2col", Windows::im2col, full, full);
  add("fast, one-hot filters", Windows::one_hot, full, full);
  if (x.device().is_cpu() || x.dtype() != float32) return ways;
  add("convolution, TF32", Windows::none, tf32, full);
  add("fast, im2col, TF32 in the product", Windows::im2col, full, tf32);
  add("fast, one-hot filters, TF32 in the product", Windows::one_hot, full, tf32);
  add("fast, one-hot filters, TF32 in the convolution", Windows::one_hot, tf32, full);
  add("fast, one-hot filters, TF32 in both", Windows::one_hot, tf32, tf32);
  return ways;
}

void measure_problem(const AskOptions& options, const Shape& input, DType dtype, Times& times) {
  manual_seed(1);
  Shape weight{filters, input[1]};
  weight.resize(input.size(), kernel_size);
  const Tensor x = randn(input, {.device = options.device}).to(dtype);
  const Tensor w = (randn(weight, {.device = options.device}) * 0.2).to(dtype);
  const Tensor bias = randn({filters}, {.device = options.device}).to(dtype);
  const std::vector<Way> ways = ways_of(x, w, bias);
  const std::span<Record> records =
      times.measure(options, fmt::format("{}-D {}", input.size() - 2, dtype), ways, {forward});
  // After the first calls were timed.
  const Tensor exact =
      ops::conv_forward(x.to(float64), w.to(float64), bias.to(float64), {.padding = layer_padding});
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const double error = relative_error(ways[i].compute(), exact);
    records[i].set_value("error", error);
    if (!is_explained(error, dtype, ways[i].name))
      records[i].set_detail("error", "more than its type explains");
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

Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Windows layout,
                 Precision convolution, Precision product) {
  if (layout == Windows::none)
    return ops::conv_forward(x, w, bias, {.padding = padding, .precision = convolution});
  const int64_t channels = x.size(1);
  const Shape kernel = spatial(w);
  const Tensor padded = pad(x, std::vector<int64_t>(2 * kernel.size(), padding));
  Shape output = spatial(padded);
  for (std::size_t d = 0; d < output.size(); ++d) output[d] -= kernel[d] - 1;
  const Tensor windows =  // [N, C * taps, L]
      layout == Windows::im2col
          ? unfold(padded, {.kernel_size = kernel})
          : flatten(ops::conv_forward(
                        padded, one_hot_filters(channels, kernel, x), {},
                        {.groups = channels, .format = MemoryFormat::contiguous, .precision = convolution}),
                    2);
  const Tensor columns = einsum("kr,nrl->nkl", {flatten(w, 1), windows}, {.precision = product});
  Shape one_each(x.shape().size(), 1);
  one_each[1] = bias.size(0);
  return fold(columns, output, {.kernel_size = 1}) + reshape(bias, one_each);
}

bool is_explained(double error, DType dtype, const std::string& way) {
  const bool short_factors = dtype == float16 || way.find("TF32") != std::string::npos;
  return error <= (dtype == bfloat16 ? 1e-2 : short_factors ? 1.5e-3 : 1e-5);
}

Strings conclude_faster_convolution(const Times& times) {
  Strings sentences = times.compare("problem", {forward}, "way");
  const auto full_name = [](const Record& record) { return label_text(record, {"problem", "way"}); };
  const Record& slowest_start =
      *std::max_element(times.records.begin(), times.records.end(), [](const Record& a, const Record& b) {
        return a.time->first_call / a.time->median < b.time->first_call / b.time->median;
      });
  sentences.push_back(fmt::format("Who times the first call alone is misled most by {}: {} instead of {}.",
                                  full_name(slowest_start),
                                  benchmark::format_time(slowest_start.time->first_call, 3),
                                  benchmark::format_time(slowest_start.time->median, 3)));
  Strings wrong;
  for (const Record& record : times.records)
    if (!record.label("error").empty()) wrong.push_back(full_name(record));
  sentences.push_back(
      wrong.empty()
          ? "All ways agree with float64 as far as their types and precisions let them."
          : fmt::format("Off by more than their types explain, so that their times mean nothing: {}.",
                        fmt::join(wrong, "; ")));
  return sentences;
}

Answer faster_convolution(const AskOptions& options) {
  const NoGrad guard;
  // As many elements in one and three dimensions as in two.
  const std::vector<Shape> inputs =
      options.quick ? std::vector<Shape>{{1, 3, 96, 96}, {1, 3, 9216}, {1, 3, 16, 24, 24}}
                    : std::vector<Shape>{{1, 3, 1024, 1024}, {1, 3, 1048576}, {1, 3, 64, 128, 128}};
  Answer answer{.setup = {fmt::format(
                    "Inputs {}; {} filters of size {}, padding {}, bias; forward; \"fast\" is pad, unfold, "
                    "einsum and fold. The error is that against float64.",
                    fmt::join(inputs, ", "), filters, kernel_size, layer_padding)}};
  if (options.device.is_cpu())
    answer.setup.emplace_back("Precision settings change nothing on a CPU: TF32 has no rows here.");
  for (const Shape& input : inputs)
    for (const DType dtype : {float32, float16, bfloat16})
      measure_problem(options, input, dtype, answer.times);
  answer.plot = time_bars({.title = "A convolution, and the same from unfold and einsum", .series = {"way"}},
                          answer.times.records);
  answer.conclusion = conclude_faster_convolution(answer.times);
  return answer;
}

}  // namespace pleat::bench::ask
