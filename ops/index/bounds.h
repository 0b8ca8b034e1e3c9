// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// Whether all elements of row-major or otherwise dense `indices` (int32 or int64) lie in [low, high), found
/// over the grid of their device. On CUDA the host waits for the answer and so for all work before it: an
/// index outside is an error of the call it was given to, not of whatever comes later.
bool all_within(const char* op, const Tensor& indices, int64_t low, int64_t high);

}  // namespace pleat::ops
