#include "pleat/onnx/import/operators.h"

/// Quantised graphs, computed in floating numbers: integers of 4 and 8 bits are the numbers that they stand
/// for, rounded where the graph rounds.

namespace pleat::onnx::imported {
namespace {

/// A scale or zero point in the shape that goes with x: one number, one for each place along the axis, or one
/// for each block of places.
Tensor beside(NodeCall& n, const Tensor& parameter, const Tensor& x, int64_t axis) {
  if (parameter.numel() == 1 && parameter.rank() <= 1) return reshape(parameter, Sizes(Shape()));
  axis = n.axis(axis, x.rank());
  const int64_t block = n.integer("block_size", 0);
  if (parameter.rank() == 1) {
    Shape shape(static_cast<std::size_t>(x.rank()), 1);
    shape[static_cast<std::size_t>(axis)] = parameter.numel();
    return view(parameter.contiguous(), Sizes(shape));
  }
  if (block < 1) return parameter;
  return narrow(repeat_interleave(parameter, block, axis), axis, 0, x.size(axis));
}

/// Integers with the zero point of an input taken off, in a floating type.
Tensor centred(NodeCall& n, std::size_t x, std::size_t zero, int64_t axis, DType dtype) {
  const Tensor y = n.x(x).to(dtype);
  return n.has(zero) ? y - beside(n, n.x(zero), y, axis).to(dtype) : y;
}

/// Integers at an input, followed by their scale and zero point, as the numbers that they stand for.
Tensor dequantized(NodeCall& n, std::size_t i, int64_t axis) {
  const Tensor y = centred(n, i, i + 2, axis, n.dtype(i + 1));
  return y * beside(n, n.x(i + 1), y, axis);
}

/// The integers nearest to x / scale + zero point. Where a gradient is wanted they are held as floating
/// numbers, and the rounding counts as the identity within the range, and as constant beyond it (Jacob et
/// al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
/// 2018), so that what is quantised can be trained.
GraphValue quantized(NodeCall& n, const Tensor& x, const Tensor& scale, const Tensor& zero,
                     const IntegerRange& range, int64_t axis = 1) {
  Tensor y = x / beside(n, scale, x, axis).to(x.dtype());
  const auto moved = [&](const Tensor& t) {
    return zero.defined() ? t + beside(n, zero, x, axis).to(x.dtype()) : t;
  };
  const Tensor whole = clamp(moved(round(y)), range.low, range.high);
  GraphValue value;
  if (grad_enabled() && x.requires_grad()) {
    const Tensor within = clamp(moved(y), range.low, range.high);
    value = within + (whole - within).detach();
  } else {
    value = whole.to(range.type == 2 ? uint8 : int32);
  }
  value.type = range.type;
  return value;
}

int64_t type_of(const NodeCall& n, std::size_t i) {
  if (!n.has(i)) return 2;
  const GraphValue& value = n.value(i);
  return value.type != 0 ? value.type : value.tensor.dtype() == int32 ? 6 : 2;
}

NodeResults quantize_linear(NodeCall& n) {
  const IntegerRange range = range_of(n.has(2) ? type_of(n, 2) : n.integer("output_dtype", 2));
  return quantized(n, n.x(0).to(n.dtype(1)), n.x(1), n.x_or_none(2), range, n.integer("axis", 1));
}

NodeResults dequantize_linear(NodeCall& n) {
  const Tensor y = dequantized(n, 0, n.integer("axis", 1));
  const int64_t type = n.integer("output_dtype", 0);
  return type == 0 ? y : y.to(n.dtype_of_number(type));
}

NodeResults dynamic_quantize_linear(NodeCall& n) {
  const Tensor& x = n.x();
  const Tensor low = minimum(min(x), 0), high = maximum(max(x), 0), scale = (high - low) / 255.0;
  const Tensor zero = clamp(round(-low / scale), 0, 255);
  const Tensor y = clamp(round(x / scale) + zero, 0, 255);
  return GraphValues{y.to(uint8), scale, zero.to(uint8)};
}

NodeResults conv_integer(NodeCall& n) {
  const Tensor y = convolution(n, centred(n, 0, 2, 1, float64), centred(n, 1, 3, 0, float64), {});
  return round(y).to(int32);
}

NodeResults matmul_integer(NodeCall& n) {
  const Tensor a = centred(n, 0, 2, -2, float64), b = centred(n, 1, 3, -1, float64);
  return round(matmul(a, b)).to(int32);
}

/// The result as integers, by the scale at an input and the zero point behind it.
NodeResults rounded(NodeCall& n, const Tensor& y, std::size_t scale) {
  return quantized(n, y, n.x(scale), n.x_or_none(scale + 1), range_of(type_of(n, scale + 1)));
}

/// x, its scale and zero point; the same of weights and of the result; a bias.
NodeResults qlinear_conv(NodeCall& n) {
  Tensor bias;
  if (n.has(8)) bias = n.x(8).to(float32) * (reshape(n.x(4), {n.x(4).numel()}) * n.x(1));
  return rounded(n, convolution(n, dequantized(n, 0, 1), dequantized(n, 3, 0), bias), 6);
}

NodeResults qlinear_matmul(NodeCall& n) {
  return rounded(n, matmul(dequantized(n, 0, -2).to(float32), dequantized(n, 3, -1).to(float32)), 6);
}

/// onnxruntime's operators of integers, each of the floating function; the result's scale and zero point
/// follow the operands.
template <class F>
Operator quantized_unary(F f) {
  return {[f](NodeCall& n) -> NodeResults { return rounded(n, f(n, dequantized(n, 0, 1)), 3); },
          {Slot::operand, Slot::option}};
}
template <class F>
Operator quantized_binary(F f) {
  return {[f](NodeCall& n) -> NodeResults {
            return rounded(n, f(dequantized(n, 0, 1), dequantized(n, 3, 1)), 6);
          },
          {Slot::operand, Slot::option, Slot::option, Slot::operand, Slot::option}};
}

Tensor global_mean(NodeCall& n, const Tensor& x) {
  std::vector<int64_t> dims;
  const int64_t channels = n.flag("channels_last") ? x.rank() - 1 : 1;
  for (int64_t d = 1; d < x.rank(); ++d)
    if (d != channels) dims.push_back(d);
  return mean(x, Dims(dims), true);
}

NodeResults qlinear_concat(NodeCall& n) {
  std::vector<Tensor> parts;
  for (std::size_t i = 2; i + 2 < n.inputs(); i += 3) parts.push_back(dequantized(n, i, 1));
  if (parts.empty()) n.fail("has no parts");
  return rounded(n, cat(parts, n.axis(n.integer("axis", 1), parts[0].rank())), 0);
}

/// A, B with a scale for each column, a bias of integers by the product of their scales; a result of integers
/// where a scale is given for it.
NodeResults qgemm(NodeCall& n) {
  Tensor a = dequantized(n, 0, 1), b = dequantized(n, 3, n.flag("transB") ? 0 : 1);
  if (n.flag("transA")) a = transpose(a, 0, 1);
  if (n.flag("transB")) b = transpose(b, 0, 1);
  const double alpha = n.number("alpha", 1);
  Tensor y = matmul(a, b) * alpha;
  if (n.has(6)) y = y + n.x(6).to(float32) * (n.x(4) * reshape(n.x(1), Sizes(Shape())) * alpha);
  if (!n.has(7)) return y;
  return rounded(n, y, 7);
}

/// Weights [N, blocks, bytes] of 4 bits or 8, with a scale (and a zero point) for each block.
Tensor matmul_nbits(NodeCall& n) {
  const int64_t k = n.integer("K", 0), rows = n.integer("N", 0), bits = n.integer("bits", 4),
                block = n.integer("block_size", 32);
  if ((bits != 4 && bits != 8) || k < 1 || rows < 1 || block < 1)
    n.fail("weights of other than 4 or 8 bits are not read");
  const int64_t blocks = (k + block - 1) / block;
  if (n.has(4)) n.fail("groups by an index are not read");
  // The lower half of a byte comes first.
  const auto unpacked = [&](const Tensor& bytes) {
    if (bits == 8) return bytes.to(int32);
    const Tensor b = bytes.to(int32), high = floor_divide(b, 16);
    return flatten(stack({b - high * 16, high}, -1), -2);
  };
  const Tensor scale = reshape(n.x(2), {rows, blocks, 1});
  Tensor weight = narrow(unpacked(reshape(n.x(1), {rows, blocks, -1})), -1, 0, block).to(scale.dtype());
  if (!n.has(3))
    weight = weight - (bits == 4 ? 8.0 : 128.0);
  else if (is_floating(n.dtype(3)))
    weight = weight - reshape(n.x(3), {rows, blocks, 1});
  else
    weight = weight - reshape(narrow(unpacked(reshape(n.x(3), {rows, -1})), 1, 0, blocks), {rows, blocks, 1})
                          .to(scale.dtype());
  weight = narrow(reshape(weight * scale, {rows, blocks * block}), 1, 0, k);
  return linear(n.x(0), weight, n.x_or_none(5));
}

}  // namespace

Operators quantized_operators() {
  const std::vector<Slot> options{Slot::operand, Slot::option};
  return {
      {"ConvInteger/4(auto_pad dilations group kernel_shape pads strides)", {conv_integer}},
      {"DequantizeLinear/3(axis block_size output_dtype)", {dequantize_linear, options}},
      {"DynamicQuantizeLinear/1", {dynamic_quantize_linear}},
      {"MatMulInteger/4", {matmul_integer}},
      {"QLinearConv/9(auto_pad dilations group kernel_shape pads strides)", {qlinear_conv, options}},
      {"QLinearMatMul/8", {qlinear_matmul, options}},
      {"QuantizeLinear/3(axis block_size output_dtype precision saturate)", {quantize_linear, options}},
      {"com.microsoft.QGemm/9(alpha transA transB)", {qgemm, options}},
      {"com.microsoft.QLinearAdd/8",
       quantized_binary([](const Tensor& a, const Tensor& b) { return a + b; })},
      {"com.microsoft.QLinearConcat(axis)", {qlinear_concat}},
      {"com.microsoft.QLinearGlobalAveragePool/5(channels_last)", quantized_unary(global_mean)},
      {"com.microsoft.QLinearLeakyRelu/5(alpha)",
       quantized_unary([](NodeCall& n, const Tensor& x) { return leaky_relu(x, n.number("alpha", 0.01)); })},
      {"com.microsoft.QLinearMul/8",
       quantized_binary([](const Tensor& a, const Tensor& b) { return a * b; })},
      {"com.microsoft.QLinearSigmoid/5",
       quantized_unary([](NodeCall&, const Tensor& x) { return sigmoid(x); })},
      {"com.microsoft.QLinearSoftmax/5(axis opset)",
       quantized_unary([](NodeCall& n, const Tensor& x) { return softmax(x, n.integer("axis", -1)); })},
      {"com.microsoft.MatMulNBits/6(K N accuracy_level bits block_size)", {matmul_nbits, options}},
  };
}

}  // namespace pleat::onnx::imported
