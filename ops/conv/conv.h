#pragma once

#include <concepts>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

namespace pleat {

/// Convolution (cross-correlation, as everywhere in deep learning) of x [N, C, spatial...] or unbatched
/// [C, spatial...] with weight [K, C / groups, kernel...] and bias [K] (undefined: none).
///   y[n, k, p] = bias[k] + sum over c, r of x[n, c, p * stride - padding + r * dilation] * weight[k, c, r]
/// The implementation and the format of the result can be chosen in the options or by a ConvPolicy.
/// Throws ShapeError, DTypeError, DeviceError, ValueError, all before anything is computed.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
/// `conv2d(x, w, {.padding = 1})`: without a bias. Templates, so that `{}` is an empty bias.
template <std::same_as<ConvOptions> O = ConvOptions>
Tensor conv1d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv1d(x, weight, {}, options);
}
template <std::same_as<ConvOptions> O = ConvOptions>
Tensor conv2d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv2d(x, weight, {}, options);
}
template <std::same_as<ConvOptions> O = ConvOptions>
Tensor conv3d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv3d(x, weight, {}, options);
}

/// Transposed convolution: the gradient of a convolution with respect to its input, as a function of its own.
/// x [N, C, ...] with weight [C, K / groups, kernel...] gives [N, K, ...] of size
///   (input - 1) * stride - padding_low - padding_high + dilation * (kernel - 1) + output_padding + 1.
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});
/// `conv_transpose2d(x, w, {.stride = 2})`: without a bias.
template <std::same_as<ConvTransposeOptions> O = ConvTransposeOptions>
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv_transpose1d(x, weight, {}, options);
}
template <std::same_as<ConvTransposeOptions> O = ConvTransposeOptions>
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv_transpose2d(x, weight, {}, options);
}
template <std::same_as<ConvTransposeOptions> O = ConvTransposeOptions>
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const O& options) {
  return conv_transpose3d(x, weight, {}, options);
}

}  // namespace pleat
