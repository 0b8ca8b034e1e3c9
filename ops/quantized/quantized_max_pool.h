// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/problem.h"

namespace pleat::ops {

/// Windows of a max_pool in three spatial dimensions; of fewer, the first are 1.
struct PoolWindows {
  Spatial kernel{1, 1, 1}, stride{1, 1, 1}, low{0, 0, 0}, dilation{1, 1, 1};
};

/// The maxima of the windows of uint8 numbers [N, C, 1 to 3 spatial sizes] on the CPU, in the given shape,
/// lying channels_last. Padding is never a maximum.
Tensor quantized_max_pool(const Tensor& x, const PoolWindows& windows, const Shape& output);

}  // namespace pleat::ops
