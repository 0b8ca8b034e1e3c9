#pragma once

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/norm/group_norm.h"

/// Differentiable normalisations. weight and bias may be undefined; statistics of half types are computed in
/// float32, and their parameters may be float32.

namespace pleat {

/// Normalises each channel of x [N, C] or [N, C, spatial...]; see ops/norm/batch_norm.h for formula, options
/// and errors. weight, bias, running_mean and running_var are [C] and may be undefined. The running
/// statistics are changed in place in training and never carry a gradient. The residual of the options is an
/// operand like the others: y = relu(batch_norm(x) + residual) in one pass forward and two backward.
///
///   y = batch_norm(x, weight, bias, running_mean, running_var, {.training = true, .momentum = 0.1});
///   y = batch_norm(x, weight, bias, running_mean, running_var, {.residual = shortcut, .bounds = {.min =
///   0}});
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options = {});

/// Normalises groups of channels of each image of x [N, C] or [N, C, spatial...]; see ops/norm/group_norm.h.
///
///   y = group_norm(x, weight, bias, {.num_groups = 8});
Tensor group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const GroupNormOptions& options);

/// Normalises each channel of each image of x [N, C, spatial...], by its own statistics or by the running
/// ones; see ops/norm/group_norm.h. running_mean and running_var may be undefined while the input's own are
/// used.
Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, const InstanceNormOptions& options = {});

struct LayerNormOptions {
  Required<Sizes> normalized_shape;  ///< of the last dimensions of x, over which mean and variance are taken
  double eps = 1e-5;                 ///< added to the variance
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions (Ba, Kiros and Hinton,
/// 2016); weight and bias have their shape. Throws ShapeError, DTypeError, DeviceError, ValueError (eps <=
/// 0).
///
///   y = layer_norm(x, weight, bias, {.normalized_shape = {64}});
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const LayerNormOptions& options);

}  // namespace pleat
