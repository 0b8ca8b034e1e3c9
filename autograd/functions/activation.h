#pragma once

#include "pleat/core/tensor.h"

/// Differentiable activation functions; types and special values are those of ops/elementwise/activation.h.

namespace pleat {

/// max(x, 0); derivative 0 at 0.
Tensor relu(const Tensor& x);
/// In place. Returns `x`.
const Tensor& relu_(const Tensor& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);

}  // namespace pleat
