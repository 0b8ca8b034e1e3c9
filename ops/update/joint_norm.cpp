#include "pleat/ops/update/joint_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/power_sum.h"

namespace pleat::ops {

Tensor joint_norm(const char* op, const std::vector<Tensor>& tensors, double p, double max_norm) {
  const RecordOp range("joint_norm", tensors);
  if constexpr (with_cuda)
    if (tensors[0].device().is_cuda()) return joint_norm_cuda(op, tensors, p, max_norm);
  const bool largest = p == std::numeric_limits<double>::infinity();
  double total = 0;
  for (const Tensor& tensor : tensors) {
    const double one = power_sum(op, tensor, p);
    if (!largest)
      total += one;
    else if (!(total >= one) && total == total)  // a NaN stays
      total = one;
  }
  const double norm = largest || p == 1 ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
  return from_vector(std::vector<double>{norm, clip_factor(norm, max_norm)}, 2, Device());
}

}  // namespace pleat::ops
