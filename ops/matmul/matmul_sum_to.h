// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/matmul/matmul_kernels.h"

namespace pleat::ops {

/// matmul(a, b) for tensors of rank 2 and more, summed over what broadcasting from `shape` [..., m, n] to the
/// product's shape had repeated: the gradient of a factor that a batch shares. The products that are added up
/// are never held: they are one product of a larger k, or terms added in a fixed order. Throws ShapeError
/// when the product's shape cannot come from `shape`.
Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape, MatmulOptions options = {});

}  // namespace pleat::ops
