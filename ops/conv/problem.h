#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

namespace pleat::ops {

/// Three spatial sizes: depth, height, width. What a convolution of fewer dimensions lacks is 1 (padding 0).
using Spatial = std::array<int64_t, 3>;

/// The sizes, types and formats of a convolution, checked. What else a result or its speed depends on (the
/// policy, strides of operands, the machine) is not here. Formula (cross-correlation):
///   y[n, k, p] = sum over c, r of x[n, c, p * stride - padding_low + r * dilation] * w[k, c, r]
///   output = (input + padding_low + padding_high - dilation * (kernel - 1) - 1) / stride + 1
struct ConvProblem {
  int spatial_dims = 2;  ///< 1, 2 or 3; the same computation for all
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t groups = 1;
  Spatial input{1, 1, 1};
  Spatial kernel{1, 1, 1};
  Spatial output{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial padding_low{0, 0, 0};
  Spatial padding_high{0, 0, 0};
  Spatial dilation{1, 1, 1};
  DType dtype = float32;
  Device device;
  MemoryFormat format = MemoryFormat::contiguous;  ///< of the input; of dy where there is no input
  /// That the caller asks the result to have; empty: what the implementation writes best.
  std::optional<MemoryFormat> result_format = {};

  Precision precision = Precision::highest;  ///< of float32; other types have only the one

  bool bias = false;  ///< whether the forward pass adds one

  bool operator==(const ConvProblem&) const = default;
  std::size_t hash() const;  ///< equal for equal problems; of their sizes

  constexpr int64_t group_in() const { return in_channels / groups; }
  constexpr int64_t group_out() const { return out_channels / groups; }
  constexpr int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Whether the windows of dimension d are its single elements, none of them in the padding.
  constexpr bool is_pointwise(std::size_t d) const {
    return kernel[d] == 1 && stride[d] == 1 && padding_low[d] == 0 && padding_high[d] == 0;
  }
  constexpr int64_t input_pixels() const { return input[0] * input[1] * input[2]; }
  constexpr int64_t output_pixels() const { return output[0] * output[1] * output[2]; }
  /// Products of channels and taps that make one output: the depth of the matrix product.
  constexpr int64_t depth() const { return group_in() * taps(); }
  /// Floating-point operations of one pass, padding taps counted: 2 N K P C/g R.
  int64_t flops() const { return 2 * batch * out_channels * output_pixels() * depth(); }
  /// Of these, those with elements of the input, not with padding.
  double valid_flops() const;

  /// Of the result where an implementation can write either.
  MemoryFormat wanted_format() const { return result_format.value_or(conv_format(device, dtype, precision)); }

  Shape input_shape() const;   ///< [N, C, ...] with the caller's number of dimensions
  Shape weight_shape() const;  ///< [K, C/g, ...]
  Shape output_shape() const;  ///< [N, K, ...]
  /// "n128 c64 k64 hw32 r3 s1 p1": short, for messages and tables; pleat-bench reads it.
  std::string describe() const;
};

/// A tensor as far as checking needs it: a shape stands for a tensor that is yet to be made.
struct ConvOperand {
  const char* role;  ///< "input", "weight", ...
  const Shape& shape;
  DType dtype;
  Device device;
  MemoryFormat format = MemoryFormat::contiguous;

  ConvOperand(const char* role, const Tensor& tensor);
  /// The shape outlives the operand.
  ConvOperand(const char* role, const Shape& shape, const Tensor& like);
  ConvOperand(const char* role, Shape&& shape, const Tensor& like) = delete;
};

/// Checks everything and works out the sizes. `op` ("conv2d") begins every message. `output` and `bias` may
/// be null. Throws ShapeError, DTypeError, DeviceError or ValueError, before anything is touched.
ConvProblem make_conv_problem(const char* op, int spatial_dims, const ConvOperand& input,
                              const ConvOperand& weight, const ConvOptions& options,
                              const ConvOperand* output = nullptr, const ConvOperand* bias = nullptr);

/// The output size of one dimension. Throws ShapeError naming `op` when the kernel does not fit, ValueError
/// unless kernel, stride and dilation are at least 1.
int64_t conv_output_size(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding_low,
                         int64_t padding_high, int64_t dilation);

/// The {low, high} widths for each of `dims` dimensions. "same" needs stride 1: low = d(k-1)/2, high = the
/// rest.
Padding::List resolve_padding(const char* op, const Padding& padding, const Shape& kernel,
                              const Shape& stride, const Shape& dilation);

/// The simplest problem with the same elements in the same places, for operands that all lie dense in one
/// format (weights [K, C/g, kernel...], too), so that only sizes change and nothing moves:
/// - a kernel as large as its unpadded input is a 1x1 one of more channels, as columns of NHWC patches are;
/// - in channels-last format, outermost dimensions with kernel 1, stride 1 and no padding join the batch: a
///   (1, 3, 3) conv3d is a conv2d, and a 1x1 convolution one matrix product;
/// - neighbouring dimensions of that kind merge into one.
ConvProblem simplify(const ConvProblem& problem, MemoryFormat format);

}  // namespace pleat::ops
