#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/unfold/unfold_kernels.h"

namespace pleat {

/// Sliding windows of x [N, C, spatial...] as columns [N, C * taps, L]; see ops/unfold/unfold_kernels.h.
Tensor unfold(const Tensor& x, const UnfoldOptions& options);

/// Adds columns [N, C * taps, L] up into images [N, C, output_size...]: the adjoint of `unfold`.
Tensor fold(const Tensor& columns, const Sizes& output_size, const UnfoldOptions& options);

}  // namespace pleat
