#pragma once

#include "pleat/core/tensor/tensor.h"

/// Differentiable scans along one dimension, forwards or, where `reverse`, backwards; see
/// ops/reduce/scan_kernels.h.

namespace pleat {

Tensor cumsum(const Tensor& x, Integer dim, Flag reverse = false);
/// y[i] = x[0] ... x[i]. Its gradient is right also where factors are 0, and to any order.
Tensor cumprod(const Tensor& x, Integer dim, Flag reverse = false);
/// x[i + 1] - x[i] along `dim`, `n` times over: each time one element less. Throws
/// ValueError for a negative n, DTypeError for bool.
Tensor diff(const Tensor& x, Integer n = 1, Integer dim = -1);
Tensor linear_scan(const Tensor& a, const Tensor& b, Integer dim, Flag reverse = false);
Tensor shifted(const Tensor& x, Integer dim, Integer by, Real fill);

}  // namespace pleat
