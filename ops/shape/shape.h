#pragma once

#include "pleat/autograd/functions.h"
#include "pleat/core/tensor/tensor.h"

/// Differentiable views; see ops/shape/view.h for what each does.

namespace pleat {

Tensor view(const Tensor& x, Sizes shape);
Tensor reshape(const Tensor& x, Sizes shape);
Tensor permute(const Tensor& x, const Dims& order);
Tensor transpose(const Tensor& x, Integer dim0, Integer dim1);
/// The dimensions `source` at the places `destination`, the others in their order. Throws ShapeError unless
/// there are as many of both, ValueError for one named twice.
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
Tensor expand(const Tensor& x, const Sizes& shape);
Tensor slice(const Tensor& x, Integer dim, Integer start, Integer end, Integer step = 1);
Tensor narrow(const Tensor& x, Integer dim, Integer start, Integer length);
Tensor squeeze(const Tensor& x, const Dims& dims = {});
Tensor unsqueeze(const Tensor& x, Integer dim);
Tensor flatten(const Tensor& x, Integer first = 0, Integer last = -1);
Tensor unflatten(const Tensor& x, Integer dim, const Sizes& sizes);
Tensor unfold_dimension(const Tensor& x, Integer dim, Integer size, Integer step);
Tensor diagonal(const Tensor& x, Integer offset = 0, Integer dim0 = 0, Integer dim1 = 1);

}  // namespace pleat
