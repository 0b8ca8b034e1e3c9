// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Scans on any device, off the tape; ops/reduce/scan.h says what they compute.

namespace pleat::ops {

/// The running sums, or products where `is_product`. `op` names the function in errors.
Tensor running(const char* op, const Tensor& x, int64_t dim, bool reverse, bool is_product);
Tensor running_on_cpu(const char* op, const Tensor& x, int64_t dim, bool reverse, bool is_product);

/// linear_scan of a and b of one shape, one floating type and one device.
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse);
Tensor recurrence_on_cpu(const Tensor& a, const Tensor& b, int64_t dim, bool reverse);

}  // namespace pleat::ops
