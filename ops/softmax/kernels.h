// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Softmax of any strides, on any device, off the tape. `op` names the function in errors; `logarithm`: of
/// log_softmax.

namespace pleat::ops {

Tensor softmax_forward(const char* op, const Tensor& x, int64_t dim, bool logarithm);

/// From y = softmax(x): dx = y (dy - sum of dy y). From y = log_softmax(x): dx = dy - exp(y) sum of dy.
/// Throws ShapeError unless dy has y's shape.
Tensor softmax_backward(const char* op, const Tensor& dy, const Tensor& y, int64_t dim, bool logarithm);

}  // namespace pleat::ops
