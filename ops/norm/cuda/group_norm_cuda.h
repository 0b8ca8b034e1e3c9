// Private header: not installed.
#pragma once

#include "pleat/ops/norm/group_norm.h"

namespace pleat::ops {

/// group_norm_forward and group_norm_backward (group_norm.h) on a GPU; everything is checked.
GroupNormResult group_norm_forward_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        const GroupNormOptions& options, const char* op);
GroupNormGrads group_norm_backward_cuda(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                        const Tensor& mean, const Tensor& rstd,
                                        const GroupNormOptions& options, bool need_input, const char* op);

}  // namespace pleat::ops
