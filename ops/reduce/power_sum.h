// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// The sum of |x|^p over all elements of a tensor on the CPU, in float64; of p = infinity the largest |x|.
double power_sum(const char* op, const Tensor& x, double p);

}  // namespace pleat::ops
