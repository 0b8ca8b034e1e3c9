// Private header: not installed.
#pragma once

#include "pleat/ops/conv/problem.h"

/// unfold and fold on a GPU, for sources of any strides and row-major results.

namespace pleat::ops {

void unfold_cuda(const ConvProblem& problem, const Tensor& x, const Tensor& columns);
void fold_cuda(const ConvProblem& problem, const Tensor& columns, const Tensor& images);

}  // namespace pleat::ops
