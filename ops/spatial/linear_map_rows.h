// Private header: not installed.
#pragma once

#include "pleat/ops/spatial/linear_map.h"

namespace pleat::ops {

/// y = map(x) on a GPU, of float32 and the half types: computed in float, the last dimension by itself. y is
/// dense in `format`, x has any strides. With `norm` the elements of x are squared, and y is the root: the
/// norm of the windows of a map that adds up. False, and nothing happens, for maps that it cannot do: whose
/// images reach over 2^31 elements, or of which a result in the last dimension is made of many hundreds of
/// elements.
bool apply_by_rows(const char* op, const LinearMap& map, const Tensor& x, const Tensor& y,
                   MemoryFormat format, bool norm = false);

}  // namespace pleat::ops
