#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/interpolate/interpolate_kernels.h"

namespace pleat {

/// x [N, C, spatial...] of 1 to 3 spatial dimensions, resampled; differentiable. With s = 1 / factor, or
/// input / output where sizes are given, output o reads the input at
///   nearest                floor(o s)
///   linear                 max((o + 1/2) s - 1/2, 0)
///   linear, align_corners  o (input - 1) / (output - 1)
/// between its neighbours, the last of which is repeated. Throws ShapeError, ValueError, DTypeError,
/// DeviceError.
///
///   interpolate(x, {.scale_factor = 2});
///   interpolate(x, {.size = {7, 9}, .mode = Interpolation::linear, .align_corners = true});
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace pleat
