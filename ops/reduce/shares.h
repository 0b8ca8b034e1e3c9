// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Which elements a maximum came from, to which its gradient is handed out.

namespace pleat::ops {

/// 1 where x is equal to `y` (the result, its dimensions kept), else 0; of x's shape and type. NaNs count as
/// equal.
Tensor equal_elements(const Tensor& x, const Tensor& y);

/// Zeros but for the `values` at the places `indices` (int64) along `dim`, where both have size 1: a tensor
/// of `size` there, in `format`.
Tensor place_at_indices(const Tensor& values, const Tensor& indices, int64_t dim, int64_t size,
                        MemoryFormat format);

}  // namespace pleat::ops
