// Private header: not installed.
#pragma once

#include "pleat/ops/conv/problem.h"

/// unfold and fold, off the tape, for sources of any strides and row-major results. The windows are those of
/// a convolution with one channel.

namespace pleat::ops {

Tensor unfold_windows(const ConvProblem& windows, const Tensor& x);
/// To images of the shape `image`.
Tensor fold_windows(const ConvProblem& windows, const Tensor& columns, const Shape& image);

}  // namespace pleat::ops
