#include "pleat/bench/ask/faster_convolution.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "pleat/bench/ask/measure.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/relative_error.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::faster_convolution {
namespace {

constexpr int64_t kernel_size = 3;
constexpr int64_t layer_padding = 1;
constexpr int64_t filters = 16;

Shape spatial(const Tensor& x) { return Shape(x.shape().begin() + 2, x.shape().end()); }

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  return x.rank() == 3   ? conv1d(x, w, bias, options)
         : x.rank() == 4 ? conv2d(x, w, bias, options)
                         : conv3d(x, w, bias, options);
}

Precision precision(bool tf32) { return tf32 ? Precision::high : Precision::highest; }

/// As many elements in one and three dimensions as in two.
std::vector<Shape> inputs(const AskOptions& options) {
  if (options.quick) return {{1, 3, 96, 96}, {1, 3, 9216}, {1, 3, 16, 24, 24}};
  return {{1, 3, 1024, 1024}, {1, 3, 1048576}, {1, 3, 64, 128, 128}};
}

struct Operands {
  Tensor x, w, bias;
  Tensor exact;  ///< the result in float64, from operands as they are

  Operands(const Shape& input, DType dtype, Device device) {
    manual_seed(1);
    Shape weight{filters, input[1]};
    weight.resize(input.size(), kernel_size);
    x = randn(input, {.device = device}).to(dtype);
    w = (randn(weight, {.device = device}) * 0.2).to(dtype);
    bias = randn({filters}, {.device = device}).to(dtype);
    exact = conv(x.to(float64), w.to(float64), bias.to(float64), {.padding = layer_padding});
  }
};

struct Case {
  Row row;
  std::function<Tensor()> run;
};

/// All rows of one problem and type.
std::vector<Case> cases(const Operands& o) {
  const bool tensor_cores = o.x.device().is_cuda() && o.x.dtype() == float32;
  const std::vector<bool> settings = tensor_cores ? std::vector<bool>{false, true} : std::vector<bool>{false};
  const Row base{.dims = static_cast<int>(o.x.rank()) - 2, .dtype = o.x.dtype()};
  std::vector<Case> all;
  for (const bool tf32 : settings) {
    all.push_back({base, [o, tf32] {
                     return conv(o.x, o.w, o.bias, {.padding = layer_padding, .precision = precision(tf32)});
                   }});
    all.back().row.tf32_convolution = tf32;
  }
  const auto add_fast = [&](Unfolding unfolding, bool tf32_convolution, bool tf32_product) {
    all.push_back({base, [=] {
                     return conv_fast(o.x, o.w, o.bias, layer_padding, unfolding, precision(tf32_convolution),
                                      precision(tf32_product));
                   }});
    all.back().row.unfolding = unfolding;
    all.back().row.tf32_convolution = tf32_convolution;
    all.back().row.tf32_product = tf32_product;
  };
  for (const bool product : settings) add_fast(Unfolding::im2col, false, product);
  for (const bool convolution : settings)
    for (const bool product : settings) add_fast(Unfolding::one_hot, convolution, product);
  return all;
}

std::string problem_of(const Row& row) { return fmt::format("{}-D {}", row.dims, row.dtype); }

std::string way_of(const Row& row) {
  const std::string name = fmt::format("conv{}d", row.dims);
  if (!row.unfolding.has_value()) return name;
  return name + (*row.unfolding == Unfolding::im2col ? "_fast, im2col" : "_fast, one-hot filters");
}

std::string full_name(const Row& row) {
  const auto word = [](bool on) { return on ? "on" : "off"; };
  return fmt::format("{}, {} (TF32: convolution {}, product {})", way_of(row), row.dtype,
                     word(row.tf32_convolution), word(row.tf32_product));
}

std::string setup_text(const std::vector<Shape>& all) {
  std::string sizes;
  for (const Shape& shape : all) sizes += (sizes.empty() ? "" : ", ") + to_string(shape);
  return fmt::format("Inputs {}; {} filters of size {}, padding {}, bias; forward.", sizes, filters,
                     kernel_size, layer_padding);
}

std::vector<Table> tables(const std::vector<Row>& rows, bool with_precision) {
  std::vector<std::string> columns{"", "time", "first call", "error against float64"};
  if (with_precision) columns.insert(columns.begin() + 1, {"TF32 convolution", "TF32 product"});
  std::vector<Table> result;
  for (const Row& row : rows) {
    if (result.empty() || result.back().title != problem_of(row))
      result.push_back({problem_of(row), columns, {}});
    std::vector<std::string> cells{way_of(row)};
    if (with_precision) {
      cells.push_back(row.tf32_convolution ? "on" : "off");
      cells.push_back(row.tf32_product ? "on" : "off");
    }
    cells.push_back(text(row.time));
    cells.push_back(benchmark::format_time(row.time.first_call, 3));
    cells.push_back(error_text(row.error));
    result.back().rows.push_back(cells);
  }
  return result;
}

plot::BarChart chart(const std::vector<Row>& rows, Device device) {
  plot::BarChart chart{.title = "A convolution, and the same from unfold and einsum",
                       .subtitle = describe_machine(device, 0),
                       .axis = "time [ms]"};
  for (const Row& row : rows) {
    if (row.unfolding == Unfolding::one_hot && row.tf32_convolution != row.tf32_product) continue;
    std::string series = !row.unfolding.has_value()            ? "convolution"
                         : *row.unfolding == Unfolding::im2col ? "fast, im2col"
                                                               : "fast, one-hot filters";
    if (row.tf32_convolution || row.tf32_product) series += ", TF32";
    add_bar(chart, problem_of(row), series, row.time);
  }
  return chart;
}

const Row* find(const std::vector<Row>& rows, const Row& like, std::optional<Unfolding> unfolding,
                bool tf32_convolution, bool tf32_product) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.dims == like.dims && row.dtype == like.dtype && row.unfolding == unfolding &&
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
std::vector<std::string> conclude_problem(const std::vector<Row>& rows, const Row& like) {
  const Row& plain = *find(rows, like, {}, false, false);
  const Row& im2col = *find(rows, like, Unfolding::im2col, false, false);
  const Row& one_hot = *find(rows, like, Unfolding::one_hot, false, false);
  const Row& best = relate(im2col.time, one_hot.time) == Relation::longer ? one_hot : im2col;
  const Relation relation = relate(best.time, plain.time);
  const char* verdict = relation == Relation::longer    ? "unfolding by hand costs time"
                        : relation == Relation::shorter ? "unfolding by hand saves time here"
                        : relation == Relation::level   ? "unfolding by hand gains nothing"
                                                        : "it is not clear which is faster";
  std::vector<std::string> sentences{fmt::format(
      "{}: {}; {}. So {}.", problem_of(like), comparison(way_of(best), best.time, way_of(plain), plain.time),
      comparison("unfolding with one-hot filters", one_hot.time, "unfolding with im2col", im2col.time),
      verdict)};
  if (const Row* tf32 = find(rows, like, {}, true, false))
    sentences.push_back(fmt::format(
        "{}: {}; the error with TF32 is {}, without it {}.", problem_of(like),
        comparison(way_of(plain) + " without TF32", plain.time, way_of(plain) + " with TF32", tf32->time),
        error_text(tf32->error), error_text(plain.error)));
  if (const Row* tf32 = find(rows, like, Unfolding::im2col, false, true))
    sentences.push_back(fmt::format("{}: {}.", problem_of(like),
                                    comparison(way_of(im2col) + ", without TF32", im2col.time,
                                               way_of(im2col) + ", with TF32 in its product", tf32->time)));
  return sentences;
}

}  // namespace

Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like) {
  const int64_t taps = count(kernel);
  Shape shape{channels * taps, 1};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const Tensor one_channel = eye(taps, {.dtype = like.dtype(), .device = like.device()});
  return reshape(repeat(one_channel, {channels, 1}), shape);
}

Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Unfolding unfolding,
                 Precision convolution, Precision product) {
  const int64_t channels = x.size(1);
  const Shape kernel = spatial(w);
  const Tensor padded = pad(x, std::vector<int64_t>(2 * kernel.size(), padding));
  Shape output = spatial(padded);
  for (std::size_t d = 0; d < output.size(); ++d) output[d] -= kernel[d] - 1;
  const Tensor windows =  // [N, C * taps, L]
      unfolding == Unfolding::im2col
          ? unfold(padded, {.kernel_size = kernel})
          : flatten(conv(padded, one_hot_filters(channels, kernel, x), {},
                         {.groups = channels, .format = MemoryFormat::contiguous, .precision = convolution}),
                    2);
  const Tensor columns = einsum("kr,nrl->nkl", {flatten(w, 1), windows}, {.precision = product});
  const Tensor y = fold(columns, output, {.kernel_size = 1});
  return y + reshape(bias, [&] {
           Shape one_each(x.shape().size(), 1);
           one_each[1] = bias.size(0);
           return one_each;
         }());
}

std::vector<std::string> conclude(const std::vector<Row>& rows) {
  std::vector<std::string> sentences;
  std::string last;
  for (const Row& row : rows) {
    if (problem_of(row) == last) continue;
    last = problem_of(row);
    const std::vector<std::string> more = conclude_problem(rows, row);
    sentences.insert(sentences.end(), more.begin(), more.end());
  }
  const auto slowest_start = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.time.first_call / a.time.median < b.time.first_call / b.time.median;
  });
  sentences.push_back(fmt::format("Who times the first call alone is misled most by {}: {} instead of {}.",
                                  full_name(*slowest_start),
                                  benchmark::format_time(slowest_start->time.first_call, 3),
                                  benchmark::format_time(slowest_start->time.median, 3)));
  const auto wrong =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !(row.error <= tolerated(row)); });
  if (wrong == rows.end())
    sentences.push_back("All ways agree with float64 as far as their types and precisions let them.");
  else
    sentences.push_back(fmt::format("{} is off by {}, more than its type explains: its time means nothing.",
                                    full_name(*wrong), error_text(wrong->error)));
  return sentences;
}

Answer ask(const AskOptions& options) {
  const NoGrad guard;
  const std::vector<Shape> shapes = inputs(options);
  Answer answer{.setup = {setup_text(shapes)}};
  if (options.quick) answer.setup.emplace_back(quick_note);
  if (options.device.is_cpu())
    answer.setup.push_back("Precision settings change nothing on a CPU: TF32 has no rows here.");
  std::vector<Row> rows;
  for (const Shape& shape : shapes)
    for (const DType dtype : {float32, float16, bfloat16}) {
      const Operands operands(shape, dtype, options.device);
      const std::vector<Case> all = cases(operands);
      std::vector<Way> ways;
      for (const Case& one : all) ways.push_back({full_name(one.row), [run = one.run] { (void)run(); }});
      time_in_turns(options, ways, answer);
      for (const Case& one : all) {
        rows.push_back(one.row);
        rows.back().time = time_of(answer, full_name(one.row));
        rows.back().error = relative_error(one.run(), operands.exact);  // after the first call was timed
      }
    }
  answer.tables = tables(rows, options.device.is_cuda());
  answer.plot = plot::svg(chart(rows, options.device));
  answer.conclusion = conclude(rows);
  return answer;
}

}  // namespace pleat::bench::ask::faster_convolution
