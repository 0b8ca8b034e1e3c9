#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Tensors put together and taken apart. Dimensions may be negative, counting from the end.

namespace pleat::ops {

/// The tensors one after another along `dim`; all other sizes must be equal. Types are promoted. The result
/// is channels_last when every tensor is, else row-major. Throws ValueError for no tensors, ShapeError,
/// IndexError.
Tensor cat(const std::vector<Tensor>& tensors, Integer dim = 0);
/// The tensors, of one shape, along a new dimension `dim`. Errors as for cat.
Tensor stack(const std::vector<Tensor>& tensors, Integer dim = 0);

/// Views of these sizes, whose sum must be the dimension's. Throws ShapeError.
std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim = 0);

/// The sizes of the pieces of `split` and `chunk`, checked.
std::vector<int64_t> split_sizes(const Tensor& x, int64_t size, int64_t dim);
std::vector<int64_t> chunk_sizes(const Tensor& x, int64_t chunks, int64_t dim);

}  // namespace pleat::ops
