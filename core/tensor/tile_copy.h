// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Copies on a GPU between memory orders whose innermost dimensions differ, as NCHW and NHWC or a matrix and
/// its transpose: tile by tile through shared memory, so that both are moved in whole sectors. Of one type.
/// False, and nothing is done, where another copy is as good. Throws what make_elementwise_loop does.
bool copied_by_tiles(const char* op, const Tensor& to, const Tensor& from);

}  // namespace pleat
