// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Whether `to` and `from`, on the CPU, are one tensor [N, C, ...] in the two memory formats; then it is
/// copied, too.
bool copied_between_formats(const Tensor& to, const Tensor& from);

}  // namespace pleat
