#pragma once

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

namespace pleat {

/// The windows of an image: as those of a convolution.
struct UnfoldOptions {
  Required<PerDim> kernel_size;
  PerDim stride = 1;
  Padding padding = 0;
  PerDim dilation = 1;
};

/// Sliding windows of x [N, C, spatial...] (1 to 3 spatial dimensions) as columns [N, C * taps, L]: element
/// (c * taps + r, l) is x at channel c, tap r of window l, and 0 in the padding. Known as im2col.
/// Throws ShapeError, ValueError for sizes that do not fit.
Tensor unfold(const Tensor& x, const UnfoldOptions& options);

/// The adjoint of `unfold`: adds columns [N, C * taps, L] up into images [N, C, output_size...]. Known as
/// col2im. `output_size` has a size for each spatial dimension. Throws ShapeError when L is not the number of
/// its windows.
Tensor fold(const Tensor& columns, const Sizes& output_size, const UnfoldOptions& options);

}  // namespace pleat
