#pragma once

#include "pleat/core/tensor/tensor.h"

/// Convolutions whose taps are moved by numbers that a network computes: Dai et al., "Deformable
/// convolutional networks" (2017); with a mask Zhu et al., "Deformable ConvNets v2" (2019).

namespace pleat {

struct DeformConvOptions {
  PerDim stride = 1;
  PerDim padding = 0;
  PerDim dilation = 1;
  Tensor mask = {};  ///< [N, G R S, P, Q], by which what a tap reads is multiplied; undefined: none
};
/// x [N, C, H, W] with weight [K, C / groups, R, S] and bias [K] (undefined: none), as conv2d, but that tap
/// (r, s) of place (p, q) reads x, bilinear and 0 beyond the image, at
///   y = p stride - padding + r dilation + offset[n, 2 ((g R + r) S + s), p, q]
/// and x with offset[n, 2 ((g R + r) S + s) + 1, p, q], in pixels; `offset` is [N, 2 G R S, P, Q], each of G
/// groups of channels having its own. As torchvision's function of this name. Differentiable in all.
/// Throws ShapeError, ValueError, DTypeError unless all are of one floating type, DeviceError.
Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias = {},
                     const DeformConvOptions& options = {});

}  // namespace pleat
