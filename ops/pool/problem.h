// Private header: not installed.
#pragma once

#include "pleat/ops/pool/pool.h"
#include "pleat/ops/pool/window_rule.h"
#include "pleat/ops/spatial/linear_map.h"

/// What pools have in common: their checks, and the windows they come down to.

namespace pleat::ops {

WindowRules max_pool_windows(const char* op, const Tensor& x, const MaxPoolOptions& options);
WindowRules adaptive_windows(const char* op, const Tensor& x, const AdaptivePoolOptions& options);
LinearMap avg_pool_map(const char* op, const Tensor& x, const AvgPoolOptions& options);
LinearMap adaptive_avg_pool_map(const char* op, const Tensor& x, const AdaptivePoolOptions& options);

/// max_pool_backward (pool.h) with the indices that a pool over these windows gave.
Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format, const char* op);

}  // namespace pleat::ops
