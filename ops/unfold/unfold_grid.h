// Private header: not installed.
#pragma once

#include "pleat/ops/conv/problem.h"

/// unfold and fold over the grid of the device, for sources of any strides and row-major results.

namespace pleat::ops {

void unfold_on_grid(const ConvProblem& problem, const Tensor& x, const Tensor& columns);
void fold_on_grid(const ConvProblem& problem, const Tensor& columns, const Tensor& images);

}  // namespace pleat::ops
