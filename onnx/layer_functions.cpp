#include <cmath>
#include <limits>

#include "pleat/core/tensor/create.h"
#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

/// Products, convolutions and norms.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

Names matmul(Emit& e) { return {e.node("MatMul", {e.in(0, e.out_dtype()), e.in(1, e.out_dtype())})}; }

/// x W^T + b.
Names linear(Emit& e) {
  const bool has_bias = e.has(2);
  if (e.rank(0) == 2 && is_floating(e.out_dtype()))
    return {e.node("Gemm", {e.in(0), e.in(1), e.in(2)}, {{"transB", int64_t{1}}})};
  const std::string weight = e.node("Transpose", {e.in(1)}, {{"perm", Integers{1, 0}}});
  const std::string product = e.node("MatMul", {e.in(0), weight});
  return {has_bias ? e.node("Add", {product, e.in(2)}) : product};
}

Names addmm(Emit& e) {
  return {e.node("Gemm", {e.in(1), e.in(2), e.in(0)},
                 {{"alpha", e.number("alpha")}, {"beta", e.number("beta")}})};
}

/// "pads" as ONNX orders them: all low sides, then all high ones.
Integers pads_of(Emit& e) {
  Integers pads = e.integers("padding_low");
  const Integers high = e.integers("padding_high");
  pads.insert(pads.end(), high.begin(), high.end());
  return pads;
}

Integers kernel_of(Emit& e) {
  Integers kernel;
  for (int64_t d = 2; d < e.rank(1); ++d) kernel.push_back(e.fixed_size(1, d));
  return kernel;
}

NodeAttributes conv_attributes(Emit& e) {
  return {{"kernel_shape", kernel_of(e)},
          {"strides", e.integers("stride")},
          {"pads", pads_of(e)},
          {"dilations", e.integers("dilation")},
          {"group", e.integer("groups")}};
}

Names conv(Emit& e) { return {e.node("Conv", {e.in(0), e.in(1), e.in(2)}, conv_attributes(e))}; }

Names conv_transpose(Emit& e) {
  NodeAttributes attributes = conv_attributes(e);
  attributes.emplace_back("output_padding", e.integers("output_padding"));
  return {e.node("ConvTranspose", {e.in(0), e.in(1), e.in(2)}, attributes)};
}

/// One number for each channel, where an operand is undefined.
std::string or_filled(Emit& e, std::size_t i, int64_t count, double value, DType dtype) {
  return e.has(i) ? e.in(i) : e.constant(full({count}, value, {.dtype = dtype, .device = Device()}));
}

/// x w + b, where they are given, seen as [C, 1...] for [N, C, ...].
std::string scaled(Emit& e, std::string x, std::size_t weight, std::size_t bias) {
  SizeList channels(static_cast<std::size_t>(e.rank(0)) - 1, Size{0, 1});
  channels[0] = {0, e.fixed_size(0, 1)};
  if (e.has(weight)) x = e.node("Mul", {x, e.reshape(e.in(weight, e.out_dtype()), channels)});
  if (e.has(bias)) x = e.node("Add", {x, e.reshape(e.in(bias, e.out_dtype()), channels)});
  return x;
}

/// (x - mean) / sqrt(var + eps) over dimensions.
std::string normalized(Emit& e, const std::string& x, const std::string& dims, double eps) {
  const NodeAttributes keep{{"keepdims", int64_t{1}}};
  const std::string centred = e.node("Sub", {x, e.node("ReduceMean", {x, dims}, keep)});
  const std::string var = e.node("ReduceMean", {e.node("Mul", {centred, centred}), dims}, keep);
  return e.node("Div", {centred, e.node("Sqrt", {e.node("Add", {var, e.number(eps, e.out_dtype())})})});
}

/// x, weight, bias, running mean and variance, residual.
Names batch_norm(Emit& e) {
  const int64_t channels = e.fixed_size(0, 1);
  const double eps = e.number("eps");
  std::string y;
  if (e.flag("training")) {
    if (e.has(3))
      e.refuse("it is in training mode; only one without running statistics normalises by the batch");
    Integers others{0};
    for (int64_t d = 2; d < e.rank(0); ++d) others.push_back(d);
    y = scaled(e, normalized(e, e.in(0), e.list(others), eps), 1, 2);
  } else {
    y = e.node("BatchNormalization",
               {e.in(0), or_filled(e, 1, channels, 1, e.dtype(3)), or_filled(e, 2, channels, 0, e.dtype(3)),
                e.in(3), e.in(4)},
               {{"epsilon", eps}});
  }
  if (e.has(5)) y = e.node("Add", {y, e.in(5)});
  const double min = e.number("min"), max = e.number("max");
  const bool has_min = !std::isinf(min), has_max = !std::isinf(max);
  if (has_min || has_max)
    y = e.node("Clip",
               {y, has_min ? e.number(min, e.out_dtype()) : "", has_max ? e.number(max, e.out_dtype()) : ""});
  return {y};
}

/// A group is a channel of an instance norm; [N, groups, elements].
Names group_norm(Emit& e) {
  const int64_t groups = e.integer("num_groups");
  int64_t elements = 1;
  for (int64_t d = 1; d < e.rank(0); ++d) elements *= e.fixed_size(0, d);
  const std::string apart = e.reshape(e.in(0), {e.shape(0)[0], {0, groups}, {0, elements / groups}});
  const DType dtype = e.out_dtype();
  const std::string y = e.node("InstanceNormalization",
                               {apart, e.constant(full({groups}, 1, {.dtype = dtype, .device = Device()})),
                                e.constant(full({groups}, 0, {.dtype = dtype, .device = Device()}))},
                               {{"epsilon", e.number("eps")}});
  return {scaled(e, e.reshape(y, e.out_shape()), 1, 2)};
}

Names instance_norm(Emit& e) {
  if (e.has(3)) return batch_norm(e);  // by running statistics
  const int64_t channels = e.fixed_size(0, 1);
  return {e.node("InstanceNormalization",
                 {e.in(0), e.has(1) ? e.in(1, e.out_dtype()) : or_filled(e, 1, channels, 1, e.out_dtype()),
                  e.has(2) ? e.in(2, e.out_dtype()) : or_filled(e, 2, channels, 0, e.out_dtype())},
                 {{"epsilon", e.number("eps")}})};
}

Names layer_norm(Emit& e) {
  const int64_t dims = e.integer("dims");
  Shape shape;
  for (int64_t d = -dims; d < 0; ++d) shape.push_back(e.fixed_size(0, d));
  const std::string weight = e.has(1)
                                 ? e.in(1, e.out_dtype())
                                 : e.constant(full(shape, 1, {.dtype = e.out_dtype(), .device = Device()}));
  return {e.node("LayerNormalization", {e.in(0), weight, e.in(2, e.out_dtype())},
                 {{"axis", -dims}, {"epsilon", e.number("eps")}})};
}

Names rms_norm(Emit& e) {
  const int64_t dims = e.integer("dims");
  Integers last;
  for (int64_t d = e.rank(0) - dims; d < e.rank(0); ++d) last.push_back(d);
  const std::string x = e.in(0);
  const std::string mean =
      e.node("ReduceMean", {e.node("Mul", {x, x}), e.list(last)}, {{"keepdims", int64_t{1}}});
  const std::string size = e.node("Sqrt", {e.node("Add", {mean, e.number(e.number("eps"), e.out_dtype())})});
  const std::string y = e.node("Div", {x, size});
  return {e.has(1) ? e.node("Mul", {y, e.in(1, e.out_dtype())}) : y};
}

Names softmax(Emit& e, const char* op) {
  if (e.rank(0) == 0) e.refuse("it is asked of a single number");
  return {e.node(op, {e.in(0, e.out_dtype())}, {{"axis", e.dim("dim", e.rank(0))}})};
}

}  // namespace

void add_layers(Conversions& all) {
  all.merge(Conversions{
      {"matmul", {2, 2, matmul}},
      {"linear", {2, 3, linear}},
      {"addmm", {3, 3, addmm}},
      {"conv", {3, 3, conv}},
      {"conv_transpose", {3, 3, conv_transpose}},
      {"batch_norm", {6, 6, batch_norm}},
      {"group_norm", {3, 3, group_norm}},
      {"instance_norm", {3, 6, instance_norm}},
      {"layer_norm", {3, 3, layer_norm}},
      {"rms_norm", {2, 2, rms_norm}},
      {"softmax", {1, 1, [](Emit& e) { return softmax(e, "Softmax"); }}},
      {"log_softmax", {1, 1, [](Emit& e) { return softmax(e, "LogSoftmax"); }}},
  });
}

}  // namespace pleat::onnx
