#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/spatial/channel_layout.h"

namespace pleat::ops {

/// Everything that the result or the speed of a batch normalisation depends on, but for the numbers in its
/// tensors.
struct BatchNormProblem {
  ChannelView view;
  DType dtype = float32;
  Device device;
  bool training = false;
  double eps = 1e-5;
  Bounds bounds = {};     ///< rounded to dtype
  bool residual = false;  ///< something is added before it is limited

  bool operator==(const BatchNormProblem&) const = default;
  /// "training [128, 16, 1024] float32 cpu channels_last".
  std::string describe() const;
};

/// Bounds as numbers of a type: a result that is limited is then its bound exactly.
Bounds rounded(const Bounds& bounds, DType dtype);

/// The problem of a call of batch_norm_forward. All its checks are here; messages begin with `op`.
BatchNormProblem batch_norm_problem(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    const BatchNormOptions& options);

/// The problem of a call of batch_norm_backward, with its checks.
BatchNormProblem batch_norm_backward_problem(const char* op, const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                             const Tensor& rstd, const Tensor& y, const Tensor& more_dy,
                                             const BatchNormOptions& options);

/// Checks of the count of batches beside running statistics of an input x.
void check_count(const char* op, const Tensor& number, const Tensor& x);

/// Checks of a parameter or statistic of every channel of `x`: rank 1, as long as there are channels, a type
/// that goes with `dtype` (the same, or float32 beside a half type), x's device. Undefined ones pass.
void check_per_channel(const char* op, const char* what, const Tensor& t, const Tensor& x, DType dtype);

}  // namespace pleat::ops
