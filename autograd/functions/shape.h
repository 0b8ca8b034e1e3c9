#pragma once

#include "pleat/core/tensor.h"

/// Differentiable views; see ops/shape/view.h for what each does.

namespace pleat {

Tensor reshape(const Tensor& x, Shape shape);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor permute(const Tensor& x, const Dims& order);
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1);

}  // namespace pleat
