#pragma once

#include "pleat/core/tensor.h"

/// Differentiable views; see ops/shape/view.h for what each does.

namespace pleat {

Tensor view(const Tensor& x, Shape shape);
Tensor reshape(const Tensor& x, Shape shape);
Tensor permute(const Tensor& x, const Dims& order);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor select(const Tensor& x, int64_t dim, int64_t index);
Tensor squeeze(const Tensor& x, const Dims& dims = {});
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1);
Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes);
Tensor unfold_dimension(const Tensor& x, int64_t dim, int64_t size, int64_t step);
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim0 = 0, int64_t dim1 = 1);

}  // namespace pleat
