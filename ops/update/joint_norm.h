// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// What clipping by norm needs to know, two float64 beside each other on the tensors' device: the p-norm of
/// all elements of all tensors, as one vector, and min(1, max_norm / (norm + 1e-6)), which is 1 also where
/// the norm is not finite. p = infinity gives the largest magnitude. Summed in float64, in blocks that depend
/// on the sizes alone: two launches, and the same bits on every device. The tensors are floating, at least
/// one, on one device; any strides.
Tensor joint_norm(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm);

}  // namespace pleat::ops
