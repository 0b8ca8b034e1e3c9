// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/ops/spatial/linear_map.h"

namespace pleat {

/// A linear map of the spatial dimensions as a differentiable function: its derivative is the adjoint map,
/// which is recorded in the same way, so that gradients of gradients exist to any order.
Tensor linear_map(const std::string& name, const ops::LinearMap& map, const Tensor& x,
                  const ops::LinearMapOptions& options);

/// x and the map's matrices [outputs, inputs], where calls are listened to; else nothing.
std::vector<Tensor> traced_operands(const Tensor& x, const ops::LinearMap& map);

}  // namespace pleat
