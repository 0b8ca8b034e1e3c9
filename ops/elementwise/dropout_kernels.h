#pragma once

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

/// Raw parts of dropout: which elements stay, and what becomes of them.

namespace pleat::ops {

/// A bool tensor that is true (the element stays) with probability 1 - p: the same for every memory format,
/// device and number of threads. Throws ValueError unless 0 <= p <= 1; `op` names the function in the
/// message.
Tensor dropout_mask(const char* op, Shape shape, double p, MemoryFormat format, Device device,
                    Generator& generator);

/// scale * x where the mask (bool, broadcast to x) is true, else 0, in x's type.
/// Throws DTypeError unless x is floating, ShapeError when the mask does not broadcast to x.
Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale);

}  // namespace pleat::ops
