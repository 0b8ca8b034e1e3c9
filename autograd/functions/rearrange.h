#pragma once

#include "pleat/core/tensor/tensor.h"

/// Differentiable copies in another order; see ops/shape/rearrange.h for what each does.

namespace pleat {

Tensor flip(const Tensor& x, const Dims& dims);
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});
Tensor repeat(const Tensor& x, const Sizes& repeats);
Tensor tile(const Tensor& x, Sizes repeats);
Tensor repeat_interleave(const Tensor& x, Integer times, Integer dim);

}  // namespace pleat
