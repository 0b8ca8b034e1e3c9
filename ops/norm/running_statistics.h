// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// r <- (1 - momentum) r + momentum batch factor, in place. `batch` is [C] float64, dense.
void update_running(const Tensor& running, const Tensor& batch, double momentum, double factor);

/// 1 / sqrt(variance + eps) of [C] float64, dense.
Tensor reciprocal_deviation(const Tensor& variance, double eps);

}  // namespace pleat::ops
