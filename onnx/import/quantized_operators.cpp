#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/onnx/import/operators.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"

/// Quantised graphs, computed in floating numbers: integers of 4 and 8 bits are the numbers that they stand
/// for, rounded where the graph rounds.

namespace pleat::onnx::imported {
namespace {

struct Range {
  int64_t type;  ///< ONNX's number
  double low, high;
};

/// The integers of a type by its number; uint8 where it is none of them.
Range range_of(int64_t type) {
  switch (type) {
    case 3:
      return {type, -128, 127};
    case 4:
      return {type, 0, 65535};
    case 5:
      return {type, -32768, 32767};
    case 6:
      return {type, -2147483648.0, 2147483647.0};
    case 21:
      return {type, 0, 15};
    case 22:
      return {type, -8, 7};
    default:
      return {2, 0, 255};
  }
}

/// A scale or zero point in the shape that goes with x: one number, one for each place along the axis, or one
/// for each block of places.
Tensor beside(NodeCall& n, const Tensor& parameter, const Tensor& x) {
  if (parameter.numel() == 1 && parameter.rank() <= 1) return reshape(parameter, Sizes(Shape()));
  const int64_t axis = x.rank() == 0 ? 0 : n.axis(n.integer("axis", 1), x.rank()),
                block = n.integer("block_size", 0);
  if (parameter.rank() == 1) {
    Shape shape(static_cast<std::size_t>(x.rank()), 1);
    shape[static_cast<std::size_t>(axis)] = parameter.numel();
    return view(parameter.contiguous(), Sizes(shape));
  }
  if (block < 1) return parameter;
  return narrow(repeat_interleave(parameter, block, axis), axis, 0, x.size(axis));
}

Tensor dequantized(NodeCall& n, const Tensor& x, const Tensor& scale, const Tensor& zero) {
  const DType dtype = scale.dtype();
  Tensor y = x.to(dtype);
  if (zero.defined()) y = y - beside(n, zero, x).to(dtype);
  return y * beside(n, scale, x);
}

/// An integer tensor held in a type of Pleat.
GraphValue held(const Tensor& integers, const Range& range) {
  GraphValue value(integers.to(range.type == 2 ? uint8 : int32));
  value.type = range.type;
  return value;
}

GraphValue quantized(NodeCall& n, const Tensor& x, const Tensor& scale, const Tensor& zero,
                     const Range& range) {
  Tensor y = round(x / beside(n, scale, x).to(x.dtype()));
  if (zero.defined()) y = y + beside(n, zero, x).to(x.dtype());
  return held(clamp(y, range.low, range.high), range);
}

int64_t type_of(const NodeCall& n, std::size_t i) {
  if (!n.has(i)) return 2;
  const GraphValue& value = n.value(i);
  return value.type != 0 ? value.type : value.tensor.dtype() == int32 ? 6 : 2;
}

NodeResults quantize_linear(NodeCall& n) {
  const Range range = range_of(n.has(2) ? type_of(n, 2) : n.integer("output_dtype", 2));
  return quantized(n, n.x(0).to(n.dtype(1)), n.x(1), n.x_or_none(2), range);
}

NodeResults dequantize_linear(NodeCall& n) {
  const Tensor y = dequantized(n, n.x(0), n.x(1), n.x_or_none(2));
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

/// x with the zero point taken off, in float32 (exact for sums of less than 2^24) or wider.
Tensor centred(NodeCall& n, std::size_t x, std::size_t zero, int64_t axis, DType dtype) {
  Tensor y = n.x(x).to(dtype);
  if (!n.has(zero)) return y;
  Tensor z = n.x(zero).to(dtype);
  if (z.rank() == 1 && z.numel() > 1) {
    Shape shape(static_cast<std::size_t>(y.rank()), 1);
    shape[static_cast<std::size_t>(n.axis(axis, y.rank()))] = z.numel();
    z = view(z, Sizes(shape));
  } else if (z.numel() == 1) {
    z = reshape(z, Sizes(Shape()));
  }
  return y - z;
}

NodeResults conv_integer(NodeCall& n) {
  const Tensor y = convolution(n, centred(n, 0, 2, 1, float64), centred(n, 1, 3, 0, float64), {});
  return round(y).to(int32);
}

NodeResults matmul_integer(NodeCall& n) {
  const Tensor a = centred(n, 0, 2, -2, float64), b = centred(n, 1, 3, -1, float64);
  return round(matmul(a, b)).to(int32);
}

/// x, its scale and zero point; the same of weights and of the result; a bias.
NodeResults qlinear_conv(NodeCall& n) {
  const Tensor x = centred(n, 0, 2, 1, float32) * n.x(1);
  Tensor scale = n.x(4);
  Tensor weight = centred(n, 3, 5, 0, float32), bias;
  Shape rows(static_cast<std::size_t>(std::max<int64_t>(weight.rank(), 1)), 1);
  rows[0] = scale.numel();
  if (n.has(8)) bias = n.x(8).to(float32) * (reshape(scale, {scale.numel()}) * n.x(1));
  weight = weight * view(scale.contiguous(), Sizes(rows));
  return quantized(n, convolution(n, x, weight, bias), n.x(6), n.x_or_none(7), range_of(type_of(n, 7)));
}

NodeResults qlinear_matmul(NodeCall& n) {
  const auto scaled = [&](std::size_t i, int64_t axis) {
    Tensor scale = n.x(i + 1);
    const Tensor x = centred(n, i, i + 2, axis, float32);
    if (scale.numel() > 1 && scale.rank() == 1) {
      Shape shape(static_cast<std::size_t>(x.rank()), 1);
      shape[static_cast<std::size_t>(n.axis(axis, x.rank()))] = scale.numel();
      scale = view(scale.contiguous(), Sizes(shape));
    } else if (scale.numel() == 1) {
      scale = reshape(scale, Sizes(Shape()));
    }
    return x * scale.to(float32);
  };
  return quantized(n, matmul(scaled(0, -2), scaled(3, -1)), n.x(6), n.x_or_none(7), range_of(type_of(n, 7)));
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
      {"com.microsoft.MatMulNBits/6(K N accuracy_level bits block_size)", {matmul_nbits, options}},
  };
}

}  // namespace pleat::onnx::imported
