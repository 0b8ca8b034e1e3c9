#pragma once

#include "pleat/core/tensor/tensor.h"

/// Differentiable softmax along one dimension; see ops/softmax/softmax_kernels.h.

namespace pleat {

Tensor softmax(const Tensor& x, Integer dim);
Tensor log_softmax(const Tensor& x, Integer dim);
/// softmax(-x): the smallest gets the most.
Tensor softmin(const Tensor& x, Integer dim);

}  // namespace pleat
