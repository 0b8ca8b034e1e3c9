// Private header: not installed.
#pragma once

#include "pleat/ops/norm/group_norm.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::ops {

/// dy where the bounds behind the normalisation let x through, else 0; on the GPU, for an
/// implementation that cannot do it in its own pass.
Tensor open_gradient(const BatchNormProblem& problem, const BatchNormBackward& tensors);

/// Elements of a row that threads hold, at most, of types computed in float32.
inline constexpr int64_t longest_held_row = 8192;

/// group_norm_forward and group_norm_backward (group_norm.h) on a GPU; everything is checked. Unless
/// `centred` the mean counts as 0 (RMS norm), and both it and the variance are undefined: of rows [N, C]
/// whose elements threads hold.
GroupNormResult group_norm_forward_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        const GroupNormOptions& options, const char* op, bool centred = true);
GroupNormGrads group_norm_backward_cuda(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                        const Tensor& mean, const Tensor& rstd,
                                        const GroupNormOptions& options, bool need_input, const char* op);

}  // namespace pleat::ops
