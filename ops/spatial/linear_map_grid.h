// Private header: not installed.
#pragma once

#include "pleat/ops/spatial/linear_map.h"

namespace pleat::ops {

/// y = map(x), element by element over the grid of the device, for x of any strides and y that is dense in
/// `format`; both of one floating type. Sums are in float64 if `precise`, else in the type computed in.
void apply_on_grid(const char* op, const LinearMap& map, const Tensor& x, const Tensor& y,
                   MemoryFormat format, bool precise);

}  // namespace pleat::ops
