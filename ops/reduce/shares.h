// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Which elements a maximum came from: the weights by which gradients of extremes are handed out.

namespace pleat::ops {

/// 1/k at the k elements of x, over `dims`, that are equal to `y` (the result, its dimensions kept), else 0;
/// of x's shape and type. NaNs count as equal.
Tensor shares_of_equals(const Tensor& x, const Tensor& y, const Dims& dims);

/// 1 where the index along `dim` is that in `indices` (int64, size 1 along `dim`), else 0: `indices`' shape
/// with `size` along `dim`.
Tensor mask_of_index(const Tensor& indices, int64_t dim, int64_t size, DType dtype);

}  // namespace pleat::ops
