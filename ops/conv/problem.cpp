#include "pleat/ops/conv/problem.h"

#include <algorithm>

#include <fmt/format.h>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/spatial/channels_hint.h"

/// Convolutions as sizes: the checks of a call with their messages, the formulas of sizes, and the simplest
/// problem with the same elements. Computes nothing.

namespace pleat {

MemoryFormat conv_format(Device device, DType dtype, Precision precision) {
  const bool rounded = is_half(dtype) || (dtype == float32 && precision != Precision::highest);
  return device.is_cpu() || rounded ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

std::optional<MemoryFormat> conv_result_format(std::optional<MemoryFormat> asked) {
  return asked ? asked : ConvPolicy::current().format;
}

Precision conv_precision(std::optional<Precision> asked) {
  return asked.value_or(ConvPolicy::current().precision.value_or(float32_precision()));
}

}  // namespace pleat

namespace pleat::ops {
namespace {

Shape with_spatial(int64_t a, int64_t b, const Spatial& sizes, int dims) {
  Shape shape{a, b};
  for (int d = 3 - dims; d < 3; ++d) shape.push_back(sizes[static_cast<std::size_t>(d)]);
  return shape;
}

std::string line(const ConvOperand& operand) {
  return fmt::format("\n  {:<6} {} {} {}{}", operand.role, operand.shape, operand.dtype, name(operand.device),
                     operand.format == MemoryFormat::channels_last ? " channels_last" : "");
}

/// The tensors of a call, a line each: the end of every message.
std::string lines(const ConvOperand& input, const ConvOperand& weight, const ConvOperand* output,
                  const ConvOperand* bias) {
  std::string text = line(input) + line(weight);
  if (bias != nullptr) text += line(*bias);
  if (output != nullptr) text += line(*output);
  return text;
}

/// "hw32" for equal sizes, else "h32w16".
std::string sizes_text(const Spatial& sizes, int dims) {
  constexpr std::array<const char*, 3> letters = {"d", "h", "w"};
  std::string names;
  std::string each;
  bool equal = true;
  for (auto d = static_cast<std::size_t>(3 - dims); d < 3; ++d) {
    names += letters[d];
    each += fmt::format("{}{}", letters[d], sizes[d]);
    equal = equal && sizes[d] == sizes[2];
  }
  return equal ? fmt::format("{}{}", names, sizes[2]) : each;
}

std::string list_text(const char* letter, const Spatial& values, int dims) {
  const auto first = values.end() - dims;
  const bool equal = std::all_of(first, values.end(), [&](int64_t v) { return v == values[2]; });
  return equal ? fmt::format("{}{}", letter, values[2])
               : fmt::format("{}{}", letter, fmt::join(first, values.end(), "x"));
}

}  // namespace

Shape ConvProblem::input_shape() const { return with_spatial(batch, in_channels, input, spatial_dims); }
Shape ConvProblem::weight_shape() const {
  return with_spatial(out_channels, group_in(), kernel, spatial_dims);
}
Shape ConvProblem::output_shape() const { return with_spatial(batch, out_channels, output, spatial_dims); }

std::size_t ConvProblem::hash() const {
  std::size_t h = 0;
  for (const int64_t size : {batch, in_channels, out_channels, groups, input[0], input[1], input[2],
                             kernel[0], kernel[1], kernel[2], stride[2], dilation[2]})
    h = (h ^ static_cast<std::size_t>(size)) * 0x9E3779B97F4A7C15u;
  return h >> 32;
}

double ConvProblem::valid_flops() const {
  double pairs = 1;  // of an output and a tap that meet the input
  for (std::size_t d = 0; d < 3; ++d) {
    int64_t in_this = 0;
    for (int64_t tap = 0; tap < kernel[d]; ++tap) {
      // Outputs o with 0 <= o * stride + start < input.
      const int64_t start = tap * dilation[d] - padding_low[d];
      const int64_t first = start >= 0 ? 0 : ceil_div(-start, stride[d]);
      const int64_t end = start >= input[d] ? 0 : (input[d] - 1 - start) / stride[d] + 1;
      in_this += std::max<int64_t>(0, std::min(end, output[d]) - first);
    }
    pairs *= static_cast<double>(in_this);
  }
  return 2 * static_cast<double>(batch) * static_cast<double>(out_channels) *
         static_cast<double>(group_in()) * pairs;
}

std::string ConvProblem::describe() const {
  std::string text =
      fmt::format("n{} c{} k{} {} {} {}", batch, in_channels, out_channels, sizes_text(input, spatial_dims),
                  list_text("r", kernel, spatial_dims), list_text("s", stride, spatial_dims));
  if (padding_low == padding_high)
    text += ' ' + list_text("p", padding_low, spatial_dims);
  else
    text +=
        ' ' + list_text("pl", padding_low, spatial_dims) + ' ' + list_text("ph", padding_high, spatial_dims);
  if (dilation != Spatial{1, 1, 1}) text += ' ' + list_text("dil", dilation, spatial_dims);
  if (groups != 1) text += fmt::format(" g{}", groups);
  return text;
}

ConvOperand::ConvOperand(const char* role_, const Tensor& tensor)
    : role(role_),
      shape(tensor.shape()),
      dtype(tensor.dtype()),
      device(tensor.device()),
      format(tensor.memory_format()) {}

ConvOperand::ConvOperand(const char* role_, const Shape& shape_, const Tensor& like)
    : role(role_), shape(shape_), dtype(like.dtype()), device(like.device()), format(like.memory_format()) {}

int64_t conv_output_size(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding_low,
                         int64_t padding_high, int64_t dilation) {
  check<ValueError>(kernel >= 1 && stride >= 1 && dilation >= 1,
                    "{}: kernel, stride and dilation must be at least 1, got {}, {} and {}", op, kernel,
                    stride, dilation);
  const int64_t reach = checked_add(checked_multiply(dilation, kernel - 1, op), 1, op);
  const int64_t padded = checked_add(input, checked_add(padding_low, padding_high, op), op);
  check<ShapeError>(reach <= padded,
                    "{}: a kernel of {} with dilation {} reaches over {} elements, the padded input has {}",
                    op, kernel, dilation, reach, padded);
  return (padded - reach) / stride + 1;
}

Padding::List resolve_padding(const char* op, const Padding& padding, const Shape& kernel,
                              const Shape& stride, const Shape& dilation) {
  const std::size_t dims = kernel.size();
  if (padding.mode() == "same") {
    Padding::List sides;
    for (std::size_t d = 0; d < dims; ++d) {
      check<ValueError>(stride[d] == 1, "{}: padding \"same\" needs stride 1, got [{}]", op,
                        fmt::join(stride, ", "));
      const int64_t total = checked_multiply(dilation[d], checked_subtract(kernel[d], 1, op), op);
      sides.emplace_back(total / 2, total - total / 2);
    }
    return sides;
  }
  if (padding.mode() == "valid") return Padding::List(dims, Padding::Sides{0, 0});
  check<ValueError>(padding.mode().empty(),
                    "{}: padding is a number, a list, \"same\" or \"valid\", got \"{}\"", op, padding.mode());
  Padding::List sides = padding.sides();
  if (sides.size() == 1) sides.assign(dims, sides[0]);
  check<ShapeError>(sides.size() == dims,
                    "{}: padding needs one value, or {} (one for each spatial dimension), got {}", op, dims,
                    sides.size());
  for (const auto& [low, high] : sides)
    check<ValueError>(low >= 0 && high >= 0, "{}: padding must not be negative, got {} and {}", op, low,
                      high);
  return sides;
}

ConvProblem make_conv_problem(const char* op, int spatial_dims, const ConvOperand& input,
                              const ConvOperand& weight, const ConvOptions& options,
                              const ConvOperand* output, const ConvOperand* bias) {
  const auto dims = static_cast<std::size_t>(spatial_dims);
  const auto all = [&] { return lines(input, weight, output, bias); };
  const auto require_rank = [&](const ConvOperand& operand, const char* meaning) {
    check<ShapeError>(operand.shape.size() == dims + 2, "{}: {} needs {} dimensions {}, got {}{}", op,
                      operand.role, dims + 2, meaning, operand.shape.size(), all);
  };
  require_rank(input, "[N, C, spatial...]");
  require_rank(weight, "[K, C / groups, kernel...]");
  for (const ConvOperand* other : {&weight, output, bias}) {
    if (other == nullptr) continue;
    check<DeviceError>(other->device == input.device, "{}: {} is on {}, {} on {}{}", op, input.role,
                       input.device, other->role, other->device, all);
    check<DTypeError>(
        other->dtype == input.dtype,
        "{}: {} is {}, {} is {}; they must be of one type: convert one, for instance with x.to({}){}", op,
        input.role, input.dtype, other->role, other->dtype, other->dtype, all);
  }
  check<DTypeError>(is_floating(input.dtype), "{}: needs floating tensors; convert with to(float32){}", op,
                    all);

  ConvProblem problem;
  problem.spatial_dims = spatial_dims;
  problem.batch = input.shape[0];
  problem.in_channels = input.shape[1];
  problem.out_channels = weight.shape[0];
  problem.groups = options.groups;
  problem.dtype = input.dtype;
  problem.device = input.device;
  problem.format = input.format;
  problem.bias = bias != nullptr;
  problem.result_format = conv_result_format(options.format);
  if (problem.dtype == float32) problem.precision = conv_precision(options.precision);
  check<ValueError>(options.groups >= 1, "{}: groups must be at least 1, got {}", op, options.groups);
  const auto hint = [&] {
    return channels_last_hint(input.shape, checked_multiply(weight.shape[1], options.groups, op)) + all();
  };
  if (problem.in_channels % options.groups != 0 || problem.out_channels % options.groups != 0)
    fail<ShapeError>("{}: groups = {} must divide {} input and {} output channels{}", op, options.groups,
                     problem.in_channels, problem.out_channels, hint);
  check<ShapeError>(*std::min_element(weight.shape.begin(), weight.shape.end()) >= 1,
                    "{}: every size of the weight must be at least 1{}", op, all);
  if (problem.in_channels / options.groups != weight.shape[1])
    fail<ShapeError>(
        "{}: input has {} channels, but weight {} with groups = {} needs {}; a weight is [K, C / "
        "groups, kernel...]{}",
        op, problem.in_channels, weight.shape, options.groups,
        checked_multiply(weight.shape[1], options.groups, op), hint);
  if (bias != nullptr)
    check<ShapeError>(bias->shape.size() == 1 && bias->shape[0] == problem.out_channels,
                      "{}: bias needs shape [{}], got {}{}", op, problem.out_channels, bias->shape, all);

  const auto stride = options.stride.expand(spatial_dims, op, "stride");
  const auto dilation = options.dilation.expand(spatial_dims, op, "dilation");
  const Shape kernel(weight.shape.begin() + 2, weight.shape.end());
  for (const int64_t value : stride)
    check<ValueError>(value >= 1, "{}: stride must be at least 1, got [{}]", op, fmt::join(stride, ", "));
  for (const int64_t value : dilation)
    check<ValueError>(value >= 1, "{}: dilation must be at least 1, got [{}]", op, fmt::join(dilation, ", "));
  const auto padding = resolve_padding(op, options.padding, kernel, stride, dilation);
  for (std::size_t i = 0; i < dims; ++i) {
    const std::size_t d = 3 - dims + i;
    problem.input[d] = input.shape[2 + i];
    problem.kernel[d] = kernel[i];
    problem.stride[d] = stride[i];
    problem.dilation[d] = dilation[i];
    problem.padding_low[d] = padding[i].first;
    problem.padding_high[d] = padding[i].second;
    check<ShapeError>(problem.input[d] >= 1, "{}: spatial sizes must be at least 1{}", op, all);
    problem.output[d] = conv_output_size(op, problem.input[d], kernel[i], stride[i], padding[i].first,
                                         padding[i].second, dilation[i]);
  }
  // Every product of sizes that is taken later fits, that of the others where one is 0 among them.
  for (const Shape& shape : {problem.input_shape(), problem.output_shape(), problem.weight_shape()})
    dense_strides(shape);
  const auto product = [&](std::initializer_list<int64_t> sizes) {
    int64_t result = 1;
    for (const int64_t size : sizes) result = checked_multiply(result, std::max<int64_t>(size, 1), op);
    return result;
  };
  const Spatial& windows = problem.output;
  // The whole batch unfolded, and the operations of a pass.
  product({problem.batch, problem.in_channels, windows[0], windows[1], windows[2], problem.taps()});
  product({2, problem.batch, problem.out_channels, windows[0], windows[1], windows[2], problem.depth()});
  // The input with its padding, pieces of which are copied: in bytes, with channels in whole vectors.
  Spatial padded = problem.input;
  for (std::size_t d = 0; d < 3; ++d)
    padded[d] = checked_add(padded[d], checked_add(problem.padding_low[d], problem.padding_high[d], op), op);
  const int64_t channels = std::max(problem.in_channels, problem.out_channels);
  product({128, problem.batch, channels, padded[0], padded[1], padded[2]});
  if (output != nullptr)
    check<ShapeError>(
        output->shape == problem.output_shape(), "{}: {} needs shape {}, got {}{}", op, output->role,
        [&] { return to_string(problem.output_shape()); }, output->shape, all);
  return problem;
}

namespace {

constexpr Spatial none{0, 0, 0};
constexpr Spatial ones{1, 1, 1};

/// Leaves dimension d with size 1.
void clear(ConvProblem& p, std::size_t d) {
  p.input[d] = p.output[d] = p.kernel[d] = p.stride[d] = p.dilation[d] = 1;
  p.padding_low[d] = p.padding_high[d] = 0;
}

/// Whether the windows of dimension d are the stretches that it falls into, none of them in the padding.
bool has_patches(const ConvProblem& p, std::size_t d) {
  return p.kernel[d] == p.stride[d] && p.dilation[d] == 1 && p.padding_low[d] == 0 &&
         p.padding_high[d] == 0 && p.input[d] == p.output[d] * p.kernel[d];
}

void swap_dims(ConvProblem& p, std::size_t a, std::size_t b) {
  for (Spatial* sizes :
       {&p.input, &p.output, &p.kernel, &p.stride, &p.dilation, &p.padding_low, &p.padding_high})
    std::swap((*sizes)[a], (*sizes)[b]);
}

}  // namespace

ConvProblem simplify(const ConvProblem& problem, MemoryFormat format) {
  ConvProblem p = problem;
  p.spatial_dims = 3;
  p.format = format;
  p.result_format.reset();
  const bool whole =
      p.kernel == p.input && p.padding_low == none && p.padding_high == none && p.dilation == ones;
  if (whole && p.groups == 1) {
    p.in_channels *= p.input_pixels();
    for (std::size_t d = 0; d < 3; ++d) clear(p, d);
  }
  // The columns of a patch are more channels.
  if (format == MemoryFormat::channels_last && p.groups == 1 && has_patches(p, 2)) {
    p.in_channels *= p.kernel[2];
    p.input[2] = p.output[2];
    p.kernel[2] = p.stride[2] = 1;
  }
  // Contiguous, the channels lie between the batch and its pixels.
  if (format == MemoryFormat::channels_last)
    for (std::size_t d = 0; d < 3 && p.is_pointwise(d); ++d) {
      p.batch *= p.input[d];
      clear(p, d);
    }
  for (std::size_t d = 1; d < 3; ++d)
    if (p.is_pointwise(d - 1) && p.is_pointwise(d)) {
      p.input[d] *= p.input[d - 1];
      p.output[d] = p.input[d];
      clear(p, d - 1);
    }
  // Dimensions of size 1 lead, so that equal problems look equal.
  for (std::size_t pass = 0; pass < 2; ++pass)
    for (std::size_t d = 1; d < 3; ++d) {
      const bool empty = p.input[d] == 1 && p.is_pointwise(d);
      const bool empty_before = p.input[d - 1] == 1 && p.is_pointwise(d - 1);
      if (empty && !empty_before) swap_dims(p, d - 1, d);
    }
  return p;
}

}  // namespace pleat::ops
