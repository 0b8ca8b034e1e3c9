// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Copies `from` to `to`, both of one type and on the CPU, between any strides: permuted, flipped, cut out or
/// broadcast. Throws what make_elementwise_loop does.
void copy_strided(const Tensor& to, const Tensor& from);

}  // namespace pleat
