// Private header: not installed.
#pragma once

#include "pleat/core/number.h"
#include "pleat/core/tensor.h"

namespace pleat::ops {

/// copy_into and fill (copy.h) over the grid of the device.
void grid_copy(const Tensor& to, const Tensor& from);
void grid_fill(const Tensor& x, const Number& value);

}  // namespace pleat::ops
