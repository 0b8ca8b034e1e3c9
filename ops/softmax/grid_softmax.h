// Private header: not installed.
#pragma once

#include "pleat/ops/reduce/lines.h"

/// Softmax over the grid of the tensors' device. All tensors are dense, of one floating type and of the same
/// strides; `lines` are theirs.

namespace pleat::ops {

void grid_softmax(const char* op, const Tensor& y, const Tensor& x, const Lines& lines, bool logarithm);
void grid_softmax_backward(const char* op, const Tensor& dx, const Tensor& dy, const Tensor& y,
                           const Lines& lines, bool logarithm);

}  // namespace pleat::ops
