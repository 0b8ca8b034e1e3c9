#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::faster_convolution {
namespace {

constexpr int64_t kernel_size = 3, layer_padding = 1, filters = 16;

Shape spatial(const Tensor& x) { return Shape(x.shape().begin() + 2, x.shape().end()); }

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  return x.rank() == 3   ? conv1d(x, w, bias, options)
         : x.rank() == 4 ? conv2d(x, w, bias, options)
                         : conv3d(x, w, bias, options);
}

Precision precision(bool tf32) { return tf32 ? Precision::high : Precision::highest; }

std::string problem_of(const Row& row) { return fmt::format("{}-D {}", row.dims, row.dtype); }

std::string way_of(const Row& row) {
  return fmt::format("conv{}d{}", row.dims,
                     row.way == Way::plain    ? ""
                     : row.way == Way::im2col ? "_fast, im2col"
                                              : "_fast, one-hot filters");
}

const char* on_off(bool on) { return on ? "on" : "off"; }

std::string settings_of(const Row& row) {
  return fmt::format("TF32: convolution {}, product {}", on_off(row.tf32_convolution),
                     on_off(row.tf32_product));
}

std::string full_name(const Row& row) {
  return fmt::format("{}, {} ({})", way_of(row), row.dtype, settings_of(row));
}

/// The rows of one problem and type, without times.
std::vector<Row> rows_of(const Tensor& x) {
  const bool tensor_cores = x.device().is_cuda() && x.dtype() == float32;
  const std::vector<bool> settings = tensor_cores ? std::vector<bool>{false, true} : std::vector<bool>{false};
  const int dims = static_cast<int>(x.rank()) - 2;
  std::vector<Row> rows;
  for (const bool tf32 : settings) rows.push_back({dims, x.dtype(), Way::plain, tf32, false});
  for (const bool product : settings) rows.push_back({dims, x.dtype(), Way::im2col, false, product});
  for (const bool convolution : settings)
    for (const bool product : settings) rows.push_back({dims, x.dtype(), Way::one_hot, convolution, product});
  return rows;
}

std::vector<Row> measure_problem(const AskOptions& options, const Shape& input, DType dtype, Times& times) {
  manual_seed(1);
  Shape weight{filters, input[1]};
  weight.resize(input.size(), kernel_size);
  const Tensor x = randn(input, {.device = options.device}).to(dtype);
  const Tensor w = (randn(weight, {.device = options.device}) * 0.2).to(dtype);
  const Tensor bias = randn({filters}, {.device = options.device}).to(dtype);
  const auto compute = [=](const Row& row) {
    const Precision convolution = precision(row.tf32_convolution);
    return row.way == Way::plain
               ? conv(x, w, bias, {.padding = layer_padding, .precision = convolution})
               : conv_fast(x, w, bias, layer_padding, row.way, convolution, precision(row.tf32_product));
  };
  std::vector<Row> rows = rows_of(x);
  std::vector<Work> all;
  for (const Row& row : rows)
    all.push_back({problem_of(row), way_of(row), settings_of(row), [=] { (void)compute(row); }});
  times.measure(options, all);
  // After the first calls were timed.
  const Tensor exact = conv(x.to(float64), w.to(float64), bias.to(float64), {.padding = layer_padding});
  for (Row& row : rows) {
    row.time = times.at(problem_of(row), way_of(row), settings_of(row));
    row.error = relative_error(compute(row), exact);
  }
  return rows;
}

std::vector<Table> tables(const std::vector<Row>& rows, bool with_precision) {
  std::vector<Table> result;
  for (const Row& row : rows) {
    if (result.empty() || result.back().title != problem_of(row)) {
      result.push_back({problem_of(row), {"", "time", "first call", "error against float64"}, {}});
      if (with_precision)
        result.back().columns.insert(result.back().columns.begin() + 1, {"TF32 convolution", "TF32 product"});
    }
    std::vector<std::string>& cells = result.back().rows.emplace_back();
    cells = {way_of(row), text(row.time), benchmark::format_time(row.time.first_call, 3),
             fmt::format("{:.1e}", row.error)};
    if (with_precision)
      cells.insert(cells.begin() + 1, {on_off(row.tf32_convolution), on_off(row.tf32_product)});
  }
  return result;
}

const Row* find(const std::vector<Row>& rows, const Row& like, Way way, bool tf32_convolution,
                bool tf32_product) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.dims == like.dims && row.dtype == like.dtype && row.way == way &&
           row.tf32_convolution == tf32_convolution && row.tf32_product == tf32_product;
  });
  return found == rows.end() ? nullptr : &*found;
}

/// The error that a result of this type and precision may have: some roundings of its operands, of the
/// windows and of itself.
double tolerated(const Row& row) {
  if (row.dtype == bfloat16) return 1e-2;
  if (row.dtype == float16) return 1.5e-3;
  return row.tf32_convolution || row.tf32_product ? 1.5e-3 : 1e-5;
}

/// What the rows of one problem and type say.
void conclude_problem(const std::vector<Row>& rows, const Row& like, std::vector<std::string>& sentences) {
  const Row& plain = *find(rows, like, Way::plain, false, false);
  const Row& im2col = *find(rows, like, Way::im2col, false, false);
  const Row& one_hot = *find(rows, like, Way::one_hot, false, false);
  const Row& best = relate(im2col.time, one_hot.time) == Relation::longer ? one_hot : im2col;
  const Relation relation = relate(best.time, plain.time);
  const char* verdict = relation == Relation::longer    ? "unfolding by hand costs time"
                        : relation == Relation::shorter ? "unfolding by hand saves time here"
                        : relation == Relation::level   ? "unfolding by hand gains nothing"
                                                        : "it is not clear which is faster";
  sentences.push_back(fmt::format(
      "{}: {}; {}. So {}.", problem_of(like), comparison(way_of(best), best.time, way_of(plain), plain.time),
      comparison("unfolding with one-hot filters", one_hot.time, "unfolding with im2col", im2col.time),
      verdict));
  if (const Row* tf32 = find(rows, like, Way::plain, true, false))
    sentences.push_back(fmt::format(
        "{}: {}; the error with TF32 is {:.1e}, without it {:.1e}.", problem_of(like),
        comparison(way_of(plain) + " without TF32", plain.time, way_of(plain) + " with TF32", tf32->time),
        tf32->error, plain.error));
  if (const Row* tf32 = find(rows, like, Way::im2col, false, true))
    sentences.push_back(fmt::format("{}: {}.", problem_of(like),
                                    comparison(way_of(im2col) + ", without TF32", im2col.time,
                                               way_of(im2col) + ", with TF32 in its product", tf32->time)));
}

}  // namespace

Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like) {
  const int64_t taps = count(kernel);
  Shape shape{channels * taps, 1};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const Tensor one_channel = eye(taps, {.dtype = like.dtype(), .device = like.device()});
  return reshape(repeat(one_channel, {channels, 1}), shape);
}

Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Way way,
                 Precision convolution, Precision product) {
  const int64_t channels = x.size(1);
  const Shape kernel = spatial(w);
  const Tensor padded = pad(x, std::vector<int64_t>(2 * kernel.size(), padding));
  Shape output = spatial(padded);
  for (std::size_t d = 0; d < output.size(); ++d) output[d] -= kernel[d] - 1;
  const Tensor windows =  // [N, C * taps, L]
      way == Way::im2col
          ? unfold(padded, {.kernel_size = kernel})
          : flatten(conv(padded, one_hot_filters(channels, kernel, x), {},
                         {.groups = channels, .format = MemoryFormat::contiguous, .precision = convolution}),
                    2);
  const Tensor columns = einsum("kr,nrl->nkl", {flatten(w, 1), windows}, {.precision = product});
  Shape one_each(x.shape().size(), 1);
  one_each[1] = bias.size(0);
  return fold(columns, output, {.kernel_size = 1}) + reshape(bias, one_each);
}

std::vector<std::string> conclude(const std::vector<Row>& rows) {
  std::vector<std::string> sentences;
  std::string last;
  for (const Row& row : rows)
    if (problem_of(row) != last) conclude_problem(rows, row, sentences), last = problem_of(row);
  const Row& slowest_start = *std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.time.first_call / a.time.median < b.time.first_call / b.time.median;
  });
  sentences.push_back(fmt::format(
      "Who times the first call alone is misled most by {}: {} instead of {}.", full_name(slowest_start),
      benchmark::format_time(slowest_start.time.first_call, 3), median_text(slowest_start.time)));
  const auto wrong =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !(row.error <= tolerated(row)); });
  sentences.push_back(
      wrong == rows.end()
          ? "All ways agree with float64 as far as their types and precisions let them."
          : fmt::format("{} is off by {:.1e}, more than its type explains: its time means nothing.",
                        full_name(*wrong), wrong->error));
  return sentences;
}

Answer ask(const AskOptions& options) {
  const NoGrad guard;
  // As many elements in one and three dimensions as in two.
  const std::vector<Shape> inputs =
      options.quick ? std::vector<Shape>{{1, 3, 96, 96}, {1, 3, 9216}, {1, 3, 16, 24, 24}}
                    : std::vector<Shape>{{1, 3, 1024, 1024}, {1, 3, 1048576}, {1, 3, 64, 128, 128}};
  Answer answer{.setup = {fmt::format("Inputs {}; {} filters of size {}, padding {}, bias; forward.",
                                      fmt::join(inputs, ", "), filters, kernel_size, layer_padding)}};
  if (options.device.is_cpu())
    answer.setup.push_back("Precision settings change nothing on a CPU: TF32 has no rows here.");
  std::vector<Row> rows;
  for (const Shape& input : inputs)
    for (const DType dtype : {float32, float16, bfloat16})
      for (const Row& row : measure_problem(options, input, dtype, answer.times)) rows.push_back(row);
  answer.tables = tables(rows, options.device.is_cuda());
  answer.plot = bars("A convolution, and the same from unfold and einsum", options.device, answer.times,
                     [&](const Cell& cell) -> Place {
                       const Row& row = *std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
                         return problem_of(one) == cell.problem && way_of(one) == cell.way &&
                                settings_of(one) == cell.pass;
                       });
                       if (row.way == Way::one_hot && row.tf32_convolution != row.tf32_product) return {};
                       std::string series = row.way == Way::plain    ? "convolution"
                                            : row.way == Way::im2col ? "fast, im2col"
                                                                     : "fast, one-hot filters";
                       if (row.tf32_convolution || row.tf32_product) series += ", TF32";
                       return {{cell.problem, series}};
                     });
  answer.conclusion = conclude(rows);
  return answer;
}

}  // namespace pleat::bench::ask::faster_convolution
