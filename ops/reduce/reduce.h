#pragma once

#include "pleat/core/tensor.h"

/// Raw reductions over any dimensions (none named: all). With `keepdim` a reduced dimension stays with size 1.

namespace pleat::ops {

/// Sums in float64 for floating types; integers and bool give int64.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

}  // namespace pleat::ops
