// Private header: not installed.
#pragma once

#include "pleat/ops/reduce/lines.h"

/// Softmax on the tensors' GPU. All tensors are dense, of one floating type and of the same
/// strides; `lines` are theirs.

namespace pleat::ops {

void softmax_cuda(const char* op, const Tensor& y, const Tensor& x, const Lines& lines, bool logarithm);
void softmax_backward_cuda(const char* op, const Tensor& dx, const Tensor& dy, const Tensor& y,
                           const Lines& lines, bool logarithm);

}  // namespace pleat::ops
