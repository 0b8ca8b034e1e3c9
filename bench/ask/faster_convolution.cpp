#include <algorithm>

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

std::string settings(bool tf32_convolution, bool tf32_product) {
  const auto on_off = [](bool on) { return on ? "on" : "off"; };
  return fmt::format("TF32: convolution {}, product {}", on_off(tf32_convolution), on_off(tf32_product));
}

struct Variant {
  Way way;
  bool tf32_convolution = false, tf32_product = false;
};

std::vector<Variant> variants(const Tensor& x) {
  const bool tensor_cores = x.device().is_cuda() && x.dtype() == float32;
  const std::vector<bool> settings = tensor_cores ? std::vector<bool>{false, true} : std::vector<bool>{false};
  std::vector<Variant> all;
  for (const bool tf32 : settings) all.push_back({Way::plain, tf32, false});
  for (const bool product : settings) all.push_back({Way::im2col, false, product});
  for (const bool convolution : settings)
    for (const bool product : settings) all.push_back({Way::one_hot, convolution, product});
  return all;
}

void measure_problem(const AskOptions& options, const Shape& input, DType dtype, Times& times) {
  manual_seed(1);
  Shape weight{filters, input[1]};
  weight.resize(input.size(), kernel_size);
  const Tensor x = randn(input, {.device = options.device}).to(dtype);
  const Tensor w = (randn(weight, {.device = options.device}) * 0.2).to(dtype);
  const Tensor bias = randn({filters}, {.device = options.device}).to(dtype);
  const auto compute = [=](const Variant& variant) {
    const Precision convolution = precision(variant.tf32_convolution);
    return variant.way == Way::plain ? conv(x, w, bias, {.padding = layer_padding, .precision = convolution})
                                     : conv_fast(x, w, bias, layer_padding, variant.way, convolution,
                                                 precision(variant.tf32_product));
  };
  const std::vector<Variant> all = variants(x);
  std::vector<Work> work;
  const char* const suffix[] = {"", "_fast, im2col", "_fast, one-hot filters"};  // by Way
  for (const Variant& one : all)
    work.push_back({fmt::format("{}-D {}", input.size() - 2, dtype),
                    fmt::format("conv{}d{}", input.size() - 2, suffix[static_cast<int>(one.way)]),
                    settings(one.tf32_convolution, one.tf32_product), [=] { (void)compute(one); }});
  const std::size_t first = times.cells().size();
  times.measure(options, work);
  // After the first calls were timed.
  const Tensor exact = conv(x.to(float64), w.to(float64), bias.to(float64), {.padding = layer_padding});
  for (std::size_t i = 0; i < all.size(); ++i)
    times.cells()[first + i].error = relative_error(compute(all[i]), exact);
}

/// A table for each problem.
std::vector<std::string> tables(const Times& times, bool with_precision) {
  const auto setting = [](const std::string& of) {
    return Column{"TF32 " + of, [of](const Cell& cell) {
                    return cell.pass.find(of + " on") == std::string::npos ? "off" : "on";
                  }};
  };
  std::vector<Column> columns{
      {"time", [](const Cell& cell) { return text(cell.time); }},
      {"first call", [](const Cell& cell) { return benchmark::format_time(cell.time.first_call, 3); }},
      {"error against float64", [](const Cell& cell) { return fmt::format("{:.1e}", cell.error); }}};
  if (with_precision) columns.insert(columns.begin(), {setting("convolution"), setting("product")});
  std::vector<std::string> result;
  for (const std::string& problem : times.problems()) {
    std::vector<Cell> rows = times.cells();
    std::erase_if(rows, [&](const Cell& cell) { return cell.problem != problem; });
    result.push_back(table(problem, rows, columns));
  }
  return result;
}

/// "2-D float32" -> "float32"
std::string type_of(const Cell& cell) { return cell.problem.substr(cell.problem.find(' ') + 1); }

std::string full_name(const Cell& cell) {
  return fmt::format("{}, {} ({})", cell.way, type_of(cell), cell.pass);
}

bool uses_tf32(const Cell& cell) { return cell.pass.find(" on") != std::string::npos; }

/// The error that a result of this type and precision may have: some roundings of its operands, of the
/// windows and of itself.
double tolerated(const Cell& cell) {
  if (type_of(cell) == "bfloat16") return 1e-2;
  return type_of(cell) == "float16" || uses_tf32(cell) ? 1.5e-3 : 1e-5;
}

void conclude_problem(const Times& times, const std::string& problem, std::vector<std::string>& sentences) {
  const auto find = [&](Way way, bool tf32_convolution = false, bool tf32_product = false) {
    return times.find(problem, times.ways(problem).at(static_cast<std::size_t>(way)),
                      settings(tf32_convolution, tf32_product));
  };
  const Cell &plain = *find(Way::plain), &im2col = *find(Way::im2col), &one_hot = *find(Way::one_hot);
  const Cell& best = relate(im2col.time, one_hot.time) == Relation::longer ? one_hot : im2col;
  sentences.push_back(fmt::format(
      "{}: {}; {}. So {}.", problem, comparison(best.way, best.time, plain.way, plain.time),
      comparison("unfolding with one-hot filters", one_hot.time, "unfolding with im2col", im2col.time),
      verdict(best.time, plain.time,
              {"unfolding by hand saves time here", "unfolding by hand gains nothing",
               "it is not clear which is faster", "unfolding by hand costs time"})));
  if (const Cell* tf32 = find(Way::plain, true))
    sentences.push_back(
        fmt::format("{}: {}; the error with TF32 is {:.1e}, without it {:.1e}.", problem,
                    comparison(plain.way + " without TF32", plain.time, plain.way + " with TF32", tf32->time),
                    tf32->error, plain.error));
  if (const Cell* tf32 = find(Way::im2col, false, true))
    sentences.push_back(fmt::format("{}: {}.", problem,
                                    comparison(im2col.way + ", without TF32", im2col.time,
                                               im2col.way + ", with TF32 in its product", tf32->time)));
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

std::vector<std::string> conclude(const Times& times) {
  std::vector<std::string> sentences;
  for (const std::string& problem : times.problems()) conclude_problem(times, problem, sentences);
  const std::vector<Cell>& cells = times.cells();
  const Cell& slowest_start = *std::max_element(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return a.time.first_call / a.time.median < b.time.first_call / b.time.median;
  });
  sentences.push_back(fmt::format(
      "Who times the first call alone is misled most by {}: {} instead of {}.", full_name(slowest_start),
      benchmark::format_time(slowest_start.time.first_call, 3), median_text(slowest_start.time)));
  const auto wrong = std::find_if(cells.begin(), cells.end(),
                                  [](const Cell& cell) { return !(cell.error <= tolerated(cell)); });
  sentences.push_back(
      wrong == cells.end()
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
  Times& times = answer.times;
  for (const Shape& input : inputs)
    for (const DType dtype : {float32, float16, bfloat16}) measure_problem(options, input, dtype, times);
  answer.tables = tables(times, options.device.is_cuda());
  answer.plot =
      bars("A convolution, and the same from unfold and einsum", options.device, times,
           [&](const Cell& cell) -> Place {
             const bool one_hot = cell.way.ends_with("one-hot filters");
             if (one_hot && uses_tf32(cell) && cell.pass != settings(true, true)) return {};
             const std::size_t fast = cell.way.find("fast");
             return {{cell.problem, (fast == std::string::npos ? "convolution" : cell.way.substr(fast)) +
                                        (uses_tf32(cell) ? ", TF32" : "")}};
           });
  answer.conclusion = conclude(times);
  return answer;
}

}  // namespace pleat::bench::ask::faster_convolution
