#include "pleat/ops/update/joint_norm.h"

#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/power_sum.h"

namespace pleat::ops {

Tensor joint_norm(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm) {
  const RecordOp range("joint_norm", tensors);
  if constexpr (with_cuda)
    if (tensors[0].device().is_cuda()) return joint_norm_cuda(op, tensors, p, max_norm);
  const PowerNorm power{p};
  PowerSum total;
  for (const Tensor& tensor : tensors) power.add(total, vector_norm(op, tensor, p));
  const double norm = power.root(total);
  return from_vector(std::vector<double>{norm, clip_factor(norm, max_norm)}, 2, Device());
}

}  // namespace pleat::ops
