#pragma once

#include "pleat/core/tensor.h"
#include "pleat/ops/norm/batch_norm.h"

/// Differentiable normalisations.

namespace pleat {

/// Normalises each channel of x [N, C] or [N, C, spatial...]; see ops/norm/batch_norm.h for formula, options
/// and errors. weight, bias, running_mean and running_var are [C] and may be undefined. The running
/// statistics are changed in place in training and never carry a gradient.
///
///   y = batch_norm(x, weight, bias, running_mean, running_var, {.training = true, .momentum = 0.1});
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options = {});

}  // namespace pleat
