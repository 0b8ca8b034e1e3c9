// Private header: not installed.
#pragma once

#include <optional>

#include "pleat/ops/conv/options.h"
#include "pleat/ops/norm/fused_norm.h"

/// A convolution beside batch norms (ops/conv/conv_norm_act.h).

namespace pleat {
namespace ops {

/// What a pass of a convolution reads and computes beside its own, and what it has computed.
struct ConvFusion {
  /// Not null: the convolution's input is what this makes of x. backward_input then sums up the gradient.
  const Normalization* by = nullptr;
  Tensor x = {};               ///< of backward_input
  bool wants_moments = false;  ///< of the result of forward

  Tensor input = {};  ///< the convolution's input, where a forward wrote it to memory
  std::optional<Moments> moments = {};
  std::optional<GradientSums> sums = {};
};

}  // namespace ops

/// conv1d, conv2d or conv3d, by the rank of the weight, of a tensor as it is meant. `before_norm`: a batch
/// norm in training reads the result.
FusedTensor fused_conv(const FusedTensor& x, const Tensor& weight, const Tensor& bias,
                       const ConvOptions& options, bool before_norm);

}  // namespace pleat
