// Private header: not installed.
#pragma once

#include "pleat/ops/pool/pool.h"
#include "pleat/ops/pool/window_rule.h"

/// Max pooling over the grid of the device. Tensors are floating, indices int32 or int64, all of the same
/// device, checked.

namespace pleat::ops {

/// Fills a result that is dense in `format`, from x of any strides.
void max_pool_on_grid(const char* op, const WindowRules& windows, const Tensor& x,
                      const MaxPoolResult& result, MemoryFormat format);
/// Fills dx, dense in `format`, from dy and indices of any strides.
void max_pool_backward_on_grid(const char* op, const WindowRules& windows, const Tensor& dy,
                               const Tensor& indices, const Tensor& dx, MemoryFormat format);

/// The same without knowing the windows: a thread works through a whole plane. All tensors are dense in
/// `format`, float32 or float64, and the indices inside the planes.
void max_pool_scatter_on_grid(const char* op, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                              MemoryFormat format);
/// Its adjoint: y gets what the indices name in x.
void max_pool_gather_on_grid(const char* op, const Tensor& x, const Tensor& indices, const Tensor& y,
                             MemoryFormat format);

}  // namespace pleat::ops
