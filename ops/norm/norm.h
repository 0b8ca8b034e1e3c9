#pragma once

#include <optional>

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

/// What batch_norm takes beside x, as an operand of the functions in ops/conv/conv_norm_act.h.
struct BatchNormOperands {
  Tensor weight, bias, running_mean, running_var;
  BatchNormOptions options = {};
};

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

struct RmsNormOptions {
  Required<Sizes> normalized_shape;          ///< of the last dimensions of x, over which the mean is taken
  std::optional<double> eps = std::nullopt;  ///< added to the mean; none: the epsilon of x's type
};

/// y = x / sqrt(mean of x^2 + eps) * weight over the last dimensions, whose shape weight has; it may be
/// undefined (Zhang and Sennrich, "Root mean square layer normalization", 2019). Throws as layer_norm.
///
///   y = rms_norm(x, weight, {.normalized_shape = {64}});
Tensor rms_norm(const Tensor& x, const Tensor& weight, const RmsNormOptions& options);

struct LocalResponseNormOptions {
  Required<int64_t> size;  ///< channels in a window, at least 1
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

/// x / (k + alpha s)^beta, s being the mean of x^2 over a window of `size` channels around each, which is
/// filled up with zeros beyond the ends (Krizhevsky et al., "ImageNet classification with deep convolutional
/// neural networks", 2012). x is [N, C, spatial...]. Throws ShapeError for other ranks, DTypeError unless x
/// is floating, ValueError (size < 1, alpha, beta or k not finite).
Tensor local_response_norm(const Tensor& x, const LocalResponseNormOptions& options);

}  // namespace pleat
