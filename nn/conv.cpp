#include "pleat/nn/conv.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/options_text.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/shape/pad.h"

namespace pleat::nn {
namespace {

template <class Options>
using Function = Tensor (*)(const Tensor& x, const Tensor& weight, const Tensor& bias, const Options&);
constexpr Function<pleat::ConvOptions> convolutions[] = {conv1d, conv2d, conv3d};
constexpr Function<pleat::ConvTransposeOptions> transposed_convolutions[] = {
    conv_transpose1d, conv_transpose2d, conv_transpose3d};

/// Checks the options that need no input, and makes the weight [first, second, kernel...].
template <class Options>
Tensor make_weight(const std::string& module, int dims, const Options& o, int64_t first, int64_t second) {
  const char* op = module.c_str();
  check<ValueError>(o.in_channels.get() >= 1 && o.out_channels.get() >= 1,
                    "{}: in_channels and out_channels must be at least 1, got {} and {}", module,
                    o.in_channels.get(), o.out_channels.get());
  check<ValueError>(
      o.groups >= 1 && o.in_channels.get() % o.groups == 0 && o.out_channels.get() % o.groups == 0,
      "{}: groups = {} must divide in_channels {} and out_channels {}", module, o.groups, o.in_channels.get(),
      o.out_channels.get());
  const auto kernel = o.kernel_size.get().expand(dims, op, "kernel_size");
  const auto stride = o.stride.expand(dims, op, "stride");
  const auto dilation = o.dilation.expand(dims, op, "dilation");
  const auto positive = [&](const char* what, const std::vector<int64_t>& values) {
    check<ValueError>(*std::min_element(values.begin(), values.end()) >= 1,
                      "{}: {} must be at least 1, got [{}]", module, what, fmt::join(values, ", "));
  };
  positive("kernel_size", kernel);
  positive("stride", stride);
  positive("dilation", dilation);
  ops::resolve_padding(op, o.padding, kernel, stride, dilation);
  Shape shape{first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const Tensor weight = empty(shape, {.format = MemoryFormat::channels_last});
  return parameter(init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)}));
}

Tensor make_bias(const Tensor& weight, int64_t channels) {
  const double bound = 1 / std::sqrt(static_cast<double>(init::fan_in_and_fan_out(weight).in));
  return parameter(init::uniform_(empty({channels}), -bound, bound));
}

PadMode pad_mode(const std::string& module, const std::string& padding_mode) {
  if (padding_mode == "zeros") return PadMode::constant;
  if (padding_mode == "reflect") return PadMode::reflect;
  if (padding_mode == "replicate") return PadMode::replicate;
  if (padding_mode == "circular") return PadMode::circular;
  fail<ValueError>("{}: padding_mode is \"zeros\", \"reflect\", \"replicate\" or \"circular\", got \"{}\"",
                   module, padding_mode);
}

/// Widths as `pad` takes them, last dimension first.
std::vector<int64_t> pad_widths(const std::string& module, const Tensor& weight,
                                const pleat::ConvOptions& o) {
  const int64_t dims = weight.rank() - 2;
  const char* op = module.c_str();
  const Shape kernel(weight.shape().begin() + 2, weight.shape().end());
  auto sides = ops::resolve_padding(op, o.padding, kernel, o.stride.expand(dims, op, "stride"),
                                    o.dilation.expand(dims, op, "dilation"));
  std::reverse(sides.begin(), sides.end());
  std::vector<int64_t> widths;
  for (const auto& [low, high] : sides) widths.insert(widths.end(), {low, high});
  return widths;
}

template <class Options>
OptionsText describe(int64_t in, int64_t out, const Tensor& weight, const Tensor& bias, const Options& o) {
  OptionsText text;
  text(in)(out)("kernel_size",
                fmt::format("({})", fmt::join(weight.shape().begin() + 2, weight.shape().end(), ", ")));
  text("stride", o.stride, 1)("padding", o.padding, 0);
  if constexpr (requires { o.output_padding; }) text("output_padding", o.output_padding, 0);
  return text("dilation", o.dilation, 1)("groups", o.groups, 1)("bias", bias.defined(), true)(
      "implementation", o.implementation, "");
}

}  // namespace

ConvModule::ConvModule(int dims, ConvModuleOptions o)
    : options{.stride = o.stride,
              .padding = o.padding,
              .dilation = o.dilation,
              .groups = o.groups,
              .implementation = o.implementation,
              .precision = o.precision},
      padding_mode(std::move(o.padding_mode)),
      dims_(dims) {
  weight = make_weight(type_name(), dims, o, o.out_channels, o.in_channels / std::max<int64_t>(o.groups, 1));
  pad_mode(type_name(), padding_mode);
  if (o.bias) bias = make_bias(weight, o.out_channels);
}

Tensor ConvModule::forward(const Tensor& x) {
  const auto run = [this](const Tensor& input, const pleat::ConvOptions& o) {
    return convolutions[dims_ - 1](input, weight, bias, o);
  };
  // For an input of another rank the convolution throws.
  if (padding_mode == "zeros" || (x.rank() != dims_ + 1 && x.rank() != dims_ + 2)) return run(x, options);
  const PadMode mode = pad_mode(type_name(), padding_mode);
  pleat::ConvOptions unpadded = options;
  unpadded.padding = 0;
  return run(pad(x, pad_widths(type_name(), weight, options), {.mode = mode}), unpadded);
}

std::string ConvModule::options_text() const {
  return describe(weight.size(1) * options.groups, weight.size(0), weight, bias, options)(
      "padding_mode", padding_mode, "zeros");
}

ConvTransposeModule::ConvTransposeModule(int dims, ConvTransposeModuleOptions o)
    : options{.stride = o.stride,
              .padding = o.padding,
              .output_padding = o.output_padding,
              .dilation = o.dilation,
              .groups = o.groups,
              .implementation = o.implementation,
              .precision = o.precision},
      dims_(dims) {
  weight = make_weight(type_name(), dims, o, o.in_channels, o.out_channels / std::max<int64_t>(o.groups, 1));
  if (o.bias) bias = make_bias(weight, o.out_channels);
}

Tensor ConvTransposeModule::forward(const Tensor& x) {
  return transposed_convolutions[dims_ - 1](x, weight, bias, options);
}

std::string ConvTransposeModule::options_text() const {
  return describe(weight.size(0), weight.size(1) * options.groups, weight, bias, options);
}

}  // namespace pleat::nn
