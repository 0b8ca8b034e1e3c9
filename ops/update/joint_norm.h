// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// What clipping by norm needs to know, two float64 beside each other on the tensors' device: the p-norm of
/// all elements of all tensors, as one vector, and min(1, max_norm / (norm + 1e-6)), which is 1 also where
/// the norm is not finite. p = infinity gives the largest magnitude. Summed in float64, in an
/// order that depends on the sizes alone; on a GPU in two launches. The tensors are floating, at least one,
/// on one device; any strides.
Tensor joint_norm(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm);
Tensor joint_norm_cuda(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm);

PLEAT_HOST_DEVICE inline double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return norm - norm == 0 && factor < 1 ? factor : 1;
}

}  // namespace pleat::ops
