#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"
#include "pleat/ops/norm/norm.h"

/// Convolution, batch norm, addition and ReLU (ReLU6, Hardtanh: the norm's `bounds`) in fewer passes over
/// memory. On the CPU, in float32 and float64 and channels_last, a convolution sums up the moments of its
/// result for the norm behind it, and without Autocast reads x through the norm before it. Elsewhere they
/// compute the same one after the other. nn::Sequential and nn::Residual call them for modules in such an
/// order (nn/fusion.h).

namespace pleat {

/// batch_norm(conv(x, weight, bias), norm): the convolution is conv1d, conv2d or conv3d, by the rank of the
/// weight. Throws as both.
///
///   y = conv_norm_act(x, conv.weight, conv.bias, norm.operands(x, {.min = 0}), {.padding = 1});
Tensor conv_norm_act(const Tensor& x, const Tensor& weight, const Tensor& bias, const BatchNormOperands& norm,
                     const ConvOptions& options = {});

/// conv(batch_norm(x, norm), weight, bias), the order of ResNet v2 and DenseNet. Where it
/// reads x through the norm it is one node on the tape, and what the norm makes of x is not kept where the
/// convolution can compute it again. Throws as both, before the running statistics change.
Tensor norm_act_conv(const Tensor& x, const BatchNormOperands& norm, const Tensor& weight, const Tensor& bias,
                     const ConvOptions& options = {});

}  // namespace pleat
