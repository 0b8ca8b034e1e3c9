#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/interpolate/interpolate.h"

namespace pleat {

/// x [N, C, spatial...] of 1 to 3 spatial dimensions resampled, differentiable; formula, options and errors
/// in ops/interpolate/interpolate.h.
///
///   interpolate(x, {.scale_factor = 2});
///   interpolate(x, {.size = {7, 9}, .mode = Interpolation::linear, .align_corners = true});
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace pleat
