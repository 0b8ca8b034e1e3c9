// Private header: not installed.
#pragma once

#include <memory>

#include "pleat/autograd/tape.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/spatial/channel_affine.h"

/// Batch norm beside convolutions: what is computed in a convolution's pass over memory instead of in one of
/// its own (ops/conv/conv_norm_act.h).

namespace pleat {

/// A batch norm of which the statistics are known and the result is not computed.
struct PendingNorm {
  Tensor weight, bias, mean, rstd;
  BatchNormOptions options;  ///< without tensors
  std::shared_ptr<const ops::Normalization> by;
};

/// A tensor on its way through convolutions and batch norms, with what one hands to the next.
struct FusedTensor {
  Tensor x;
  std::shared_ptr<const ops::Moments> moments =
      {};                                        ///< of x, where the convolution that made it summed them up
  std::shared_ptr<const PendingNorm> norm = {};  ///< not null: what is meant is this of x
};

/// batch_norm of a tensor without a pending norm. `before_conv`: a convolution alone reads the result, which
/// stays pending where that gains something.
FusedTensor fused_norm(const FusedTensor& x, const BatchNormOperands& norm, bool before_conv);

/// The tensor as it is meant.
Tensor value(const FusedTensor& x);

/// The gradients of x, weight, bias and residual of a batch norm as functions on the tape.
Grads batch_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Tensor& saved_mean, const Tensor& saved_rstd, const Tensor& y,
                           const BatchNormOptions& options, const Needs& needs);

}  // namespace pleat
