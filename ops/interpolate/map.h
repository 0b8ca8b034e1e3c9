// Private header: not installed.
#pragma once

#include "pleat/ops/interpolate/interpolate_kernels.h"
#include "pleat/ops/spatial/linear_map.h"

namespace pleat::ops {

/// What `interpolate` does to x, with its checks.
LinearMap interpolation_map(const Tensor& x, const InterpolateOptions& options);

}  // namespace pleat::ops
