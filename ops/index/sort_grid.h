// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// The first elements of each line of x along `dim` in order, as many as `values` and `indices` (int64) have,
/// over the grid of the device.
void sort_lines_on_grid(const char* op, const Tensor& x, std::size_t dim, bool descending,
                        const Tensor& values, const Tensor& indices);

}  // namespace pleat::ops
