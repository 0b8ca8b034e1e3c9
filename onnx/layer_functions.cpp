#include <cmath>

#include "pleat/onnx/functions.h"

/// Products, convolutions and norms.

namespace pleat::onnx {
namespace {

/// x W^T + b.
Operand linear(Emit& e) {
  if (e.rank(0) == 2 && is_floating(e.out_dtype()))
    return e.node("Gemm", {e.in(0), e.in(1), e.in(2)}, {{"transB", 1}});
  const Operand product = apply("MatMul", e.in(0), e.transpose(e.in(1), {1, 0}));
  return e.has(2) ? product + e.in(2) : product;
}

Operand addmm(Emit& e) {
  return e.node("Gemm", {e.in(1), e.in(2), e.in(0)},
                {{"alpha", e.number("alpha")}, {"beta", e.number("beta")}});
}

/// "pads" as ONNX orders them: all low sides, then all high ones.
Integers pads_of(Emit& e) {
  Integers pads = e.integers("padding_low");
  const Integers high = e.integers("padding_high");
  pads.insert(pads.end(), high.begin(), high.end());
  return pads;
}

Operand conv(Emit& e, const char* op, const NodeAttributes& more) {
  Integers kernel;
  for (int64_t d = 2; d < e.rank(1); ++d) kernel.push_back(e.fixed_size(1, d));
  NodeAttributes attributes{{"kernel_shape", kernel},
                            {"strides", e.integers("stride")},
                            {"pads", pads_of(e)},
                            {"dilations", e.integers("dilation")},
                            {"group", e.integer("groups")}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return e.node(op, {e.in(0), e.in(1), e.in(2)}, attributes);
}

/// An operand; one number in its shape where it is undefined.
Operand or_filled(Emit& e, std::size_t i, const Shape& shape, double value, DType dtype) {
  return e.has(i) ? e.in(i, dtype) : e.constant(value, dtype, shape);
}

/// x w + b, where they are given, seen as [C, 1...] for [N, C, ...].
Operand scaled(Emit& e, Operand x, std::size_t weight, std::size_t bias) {
  SizeList channels(static_cast<std::size_t>(e.rank(0)) - 1, Size{0, 1});
  channels[0] = {0, e.fixed_size(0, 1)};
  if (e.has(weight)) x = x * e.reshape(e.x(weight), channels);
  if (e.has(bias)) x = x + e.reshape(e.x(bias), channels);
  return x;
}

/// sqrt(mean(x^2) + eps) over dimensions.
Operand root_mean_square(Emit& e, const Operand& x, const Operand& dims) {
  const Operand mean = e.node("ReduceMean", {x * x, dims}, {{"keepdims", 1}});
  return apply("Sqrt", mean + e.number("eps"));
}

/// x, weight, bias, running mean and variance, residual.
Operand batch_norm(Emit& e) {
  const Shape channels{e.fixed_size(0, 1)};
  Operand y;
  if (e.flag("training")) {
    if (e.has(3))
      e.refuse("it is in training mode; only one without running statistics normalises by the batch");
    Integers others{0};
    for (int64_t d = 2; d < e.rank(0); ++d) others.push_back(d);
    const Operand dims = e.list(others);
    const Operand centred = e.in(0) - e.node("ReduceMean", {e.in(0), dims}, {{"keepdims", 1}});
    y = scaled(e, centred / root_mean_square(e, centred, dims), 1, 2);
  } else {
    const DType dtype = e.dtype(3);
    y = e.node(
        "BatchNormalization",
        {e.in(0), or_filled(e, 1, channels, 1, dtype), or_filled(e, 2, channels, 0, dtype), e.in(3), e.in(4)},
        {{"epsilon", e.number("eps")}});
  }
  if (e.has(5)) y = y + e.in(5);
  const auto bound = [&](const char* name) {
    return std::isinf(e.number(name)) ? Operand() : Operand(e.number(name));
  };
  if (std::isinf(e.number("min")) && std::isinf(e.number("max"))) return y;
  return apply("Clip", y, bound("min"), bound("max"));
}

Operand instance_normalization(Emit& e, const Operand& x, const Operand& weight, const Operand& bias) {
  return e.node("InstanceNormalization", {x, weight, bias}, {{"epsilon", e.number("eps")}});
}

/// A group is a channel of an instance norm; [N, groups, elements].
Operand group_norm(Emit& e) {
  const int64_t groups = e.integer("num_groups");
  int64_t elements = 1;
  for (int64_t d = 1; d < e.rank(0); ++d) elements *= e.fixed_size(0, d);
  const Operand apart = e.reshape(e.in(0), {e.shape(0)[0], {0, groups}, {0, elements / groups}});
  const Operand y = instance_normalization(e, apart, e.constant(1, e.out_dtype(), {groups}),
                                           e.constant(0, e.out_dtype(), {groups}));
  return scaled(e, e.reshape(y, e.out_shape()), 1, 2);
}

Operand instance_norm(Emit& e) {
  if (e.has(3)) return batch_norm(e);  // by running statistics
  const Shape channels{e.fixed_size(0, 1)};
  return instance_normalization(e, e.in(0), or_filled(e, 1, channels, 1, e.out_dtype()),
                                or_filled(e, 2, channels, 0, e.out_dtype()));
}

Operand layer_norm(Emit& e) {
  const int64_t dims = e.integer("dims");
  Shape shape;
  for (int64_t d = -dims; d < 0; ++d) shape.push_back(e.fixed_size(0, d));
  return e.node("LayerNormalization", {e.in(0), or_filled(e, 1, shape, 1, e.out_dtype()), e.x(2)},
                {{"axis", -dims}, {"epsilon", e.number("eps")}});
}

Operand rms_norm(Emit& e) {
  Integers last;
  for (int64_t d = e.rank(0) - e.integer("dims"); d < e.rank(0); ++d) last.push_back(d);
  const Operand y = e.in(0) / root_mean_square(e, e.in(0), e.list(last));
  return e.has(1) ? y * e.x(1) : y;
}

Conversion softmax(const char* op) {
  return {1, 1, [op](Emit& e) {
            if (e.rank(0) == 0) e.refuse("it is asked of a single number");
            return e.node(op, {e.x()}, {{"axis", e.dim()}});
          }};
}

}  // namespace

Conversions layer_functions() {
  return {
      {"matmul", op(2, "MatMul")},
      {"linear", {2, 3, linear}},
      {"addmm", {3, 3, addmm}},
      {"conv", {3, 3, [](Emit& e) { return conv(e, "Conv", {}); }}},
      {"conv_transpose",
       {3, 3,
        [](Emit& e) {
          return conv(e, "ConvTranspose", {{"output_padding", e.integers("output_padding")}});
        }}},
      {"batch_norm", {6, 6, batch_norm}},
      {"group_norm", {3, 3, group_norm}},
      {"instance_norm", {3, 6, instance_norm}},
      {"layer_norm", {3, 3, layer_norm}},
      {"rms_norm", {2, 2, rms_norm}},
      {"softmax", softmax("Softmax")},
      {"log_softmax", softmax("LogSoftmax")},
  };
}

}  // namespace pleat::onnx
