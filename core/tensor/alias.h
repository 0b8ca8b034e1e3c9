#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// Another tensor of the same elements (shared storage), without a record on the tape: what operations
/// keep in place of a tensor of their caller's.
inline Tensor alias(const Tensor& x) { return x.as_strided(x.shape(), x.strides(), x.offset()); }

}  // namespace pleat::ops
