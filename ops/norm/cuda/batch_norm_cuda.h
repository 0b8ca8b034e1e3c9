// Private header: not installed.
#pragma once

#include "pleat/ops/norm/implementation.h"

namespace pleat::ops {

/// dy where the relu behind the normalisation let x through, else 0; on the GPU, for an
/// implementation that cannot do it in passing.
Tensor open_gradient(const BatchNormProblem& problem, const BatchNormBackward& tensors);

}  // namespace pleat::ops
