#pragma once

#include <vector>

#include "pleat/ops/shape/pad_kernels.h"

namespace pleat {

/// Widens the last dimensions by pairs of widths, the last dimension first; see ops/shape/pad_kernels.h.
/// Differentiable.
Tensor pad(const Tensor& x, const IntegerList& widths, PadOptions options = {});

}  // namespace pleat
