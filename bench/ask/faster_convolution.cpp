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
constexpr std::size_t pieces_each = 4;

Shape spatial(const Tensor& x) { return Shape(x.shape().begin() + 2, x.shape().end()); }

/// A line of the note's table: a way with its settings.
struct Setting {
  const char* name;
  Windows windows;
  Precision convolution, product;
};

std::vector<Setting> settings_for(const Tensor& x) {
  constexpr Precision full = Precision::highest, tf32 = Precision::high;
  std::vector<Setting> settings{{"convolution", Windows::none, full, full},
                                {"fast, im2col", Windows::im2col, full, full},
                                {"fast, one-hot filters", Windows::one_hot, full, full}};
  if (x.device().is_cpu() || x.dtype() != float32) return settings;
  settings.insert(settings.end(),
                  {{"convolution, TF32", Windows::none, tf32, full},
                   {"fast, im2col, TF32 in the product", Windows::im2col, full, tf32},
                   {"fast, one-hot filters, TF32 in the product", Windows::one_hot, full, tf32},
                   {"fast, one-hot filters, TF32 in the convolution", Windows::one_hot, tf32, full},
                   {"fast, one-hot filters, TF32 in both", Windows::one_hot, tf32, tf32}});
  return settings;
}

/// The columns of the note's table: each piece alone, on what the pieces before it have given.
std::vector<Way> pieces_of(const Setting& setting, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const FastPieces fast{.padding = layer_padding,
                        .layout = setting.windows,
                        .convolution = setting.convolution,
                        .product = setting.product};
  const Tensor windows = fast.unfold(x, w), columns = fast.multiply(w, windows), y = fast.fold(columns, x, w);
  std::vector<Way> pieces;
  const auto add = [&](const char* piece, std::function<Tensor()> compute) {
    pieces.push_back({.name = setting.name, .compute = std::move(compute), .piece = piece});
  };
  add("unfold", [=] { return fast.unfold(x, w); });
  add("einsum", [=] { return fast.multiply(w, windows); });
  add("fold", [=] { return fast.fold(columns, x, w); });
  add("bias", [=] { return fast.add(y, bias); });
  return pieces;
}

void measure_problem(const AskOptions& options, const Shape& input, DType dtype, Times& times) {
  manual_seed(1);
  Shape weight{filters, input[1]};
  weight.resize(input.size(), kernel_size);
  const Tensor x = randn(input, {.device = options.device}).to(dtype);
  const Tensor w = (randn(weight, {.device = options.device}) * 0.2).to(dtype);
  const Tensor bias = randn({filters}, {.device = options.device}).to(dtype);
  std::vector<Way> ways, pieces;
  for (const Setting& one : settings_for(x)) {
    ways.push_back({one.name, [=] {
                      return conv_fast(x, w, bias, layer_padding, one.windows, one.convolution, one.product);
                    }});
    if (one.windows == Windows::none) continue;
    for (Way& piece : pieces_of(one, x, w, bias)) pieces.push_back(std::move(piece));
  }
  const std::size_t wholes = ways.size();
  ways.insert(ways.end(), pieces.begin(), pieces.end());
  const std::string problem = fmt::format("{}-D {}", input.size() - 2, dtype);
  const std::span<Record> records = times.measure(options, of_problem(problem, ways), {forward});
  // After the first calls were timed.
  const Tensor exact =
      ops::conv_forward(x.to(float64), w.to(float64), bias.to(float64), {.padding = layer_padding});
  for (std::size_t i = 0; i < wholes; ++i) {
    const double error = relative_error(ways[i].compute(), exact);
    records[i].set_value("error", error);
    if (!is_explained(error, dtype, ways[i].name))
      records[i].set_detail("error", "more than its type explains");
  }
  const std::vector<Record> measured(records.begin() + static_cast<std::ptrdiff_t>(wholes), records.end());
  for (std::size_t i = 0; i < measured.size(); i += pieces_each) {
    Time sum = *measured[i].time;
    for (std::size_t piece = 1; piece < pieces_each; ++piece) sum = added(sum, *measured[i + piece].time);
    times.add(problem, measured[i].label("way"), forward, sum, "sum");
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

Tensor FastPieces::unfold(const Tensor& x, const Tensor& w) const {
  const Shape kernel = spatial(w);
  const Tensor padded = pad(x, std::vector<int64_t>(2 * kernel.size(), padding));
  if (layout == Windows::im2col) return pleat::unfold(padded, {.kernel_size = kernel});
  const int64_t channels = x.size(1);
  const ConvOptions options{.groups = channels, .format = MemoryFormat::contiguous, .precision = convolution};
  return flatten(ops::conv_forward(padded, one_hot_filters(channels, kernel, x), {}, options), 2);
}

Tensor FastPieces::multiply(const Tensor& w, const Tensor& windows) const {
  return einsum("kr,nrl->nkl", {flatten(w, 1), windows}, {.precision = product});
}

Tensor FastPieces::fold(const Tensor& columns, const Tensor& x, const Tensor& w) const {
  Shape output = spatial(x);
  for (std::size_t d = 0; d < output.size(); ++d) output[d] += 2 * padding - spatial(w)[d] + 1;
  return pleat::fold(columns, output, {.kernel_size = 1});
}

Tensor FastPieces::add(const Tensor& y, const Tensor& bias) const {
  Shape one_each(y.shape().size(), 1);
  one_each[1] = bias.size(0);
  return y + reshape(bias, one_each);
}

Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Windows layout,
                 Precision convolution, Precision product) {
  if (layout == Windows::none)
    return ops::conv_forward(x, w, bias, {.padding = padding, .precision = convolution});
  const FastPieces fast{padding, layout, convolution, product};
  return fast.add(fast.fold(fast.multiply(w, fast.unfold(x, w)), x, w), bias);
}

bool is_explained(double error, DType dtype, const std::string& way) {
  const bool short_factors = dtype == float16 || way.find("TF32") != std::string::npos;
  return error <= (dtype == bfloat16 ? 1e-2 : short_factors ? 1.5e-3 : 1e-5);
}

Strings conclude_faster_convolution(const Times& times) {
  Strings sentences = times.compare("problem", {forward}, "way");
  const auto full_name = [](const Record& record) { return label_text(record, {"problem", "way"}); };
  const Times wholes = times.only("piece", {""});
  const Record& slowest_start =
      *std::max_element(wholes.records.begin(), wholes.records.end(), [](const Record& a, const Record& b) {
        return a.time->first_call / a.time->median < b.time->first_call / b.time->median;
      });
  const Times pieces = times.only("piece", {"unfold", "einsum", "fold", "bias"});
  for (const std::string& problem : pieces.values("problem"))
    for (const std::string& way : pieces.values("way"))
      if (const Times one = pieces.only("problem", {problem}).only("way", {way}); !one.records.empty())
        sentences.push_back(one.largest_piece());
  sentences.push_back(fmt::format("Who times the first call alone is misled most by {}: {} instead of {}.",
                                  full_name(slowest_start),
                                  benchmark::format_time(slowest_start.time->first_call, 3),
                                  benchmark::format_time(slowest_start.time->median, 3)));
  Strings wrong;
  for (const Record& record : wholes.records)
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
  for (const std::string& problem : answer.times.values("problem"))
    answer.notes.push_back(
        answer.times.only("problem", {problem})
            .side_by_side(problem + ", forward: the whole and its pieces", "way", "piece"));
  answer.plot = time_bars({.title = "A convolution, and the same from unfold and einsum", .series = {"way"}},
                          answer.times.only("piece", {""}).records);
  answer.conclusion = conclude_faster_convolution(answer.times);
  return answer;
}

}  // namespace pleat::bench::ask
