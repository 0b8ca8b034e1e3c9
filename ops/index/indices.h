// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// Indices as row-major int64, each checked to lie in [0, size) of dimension `dim` of `shape`; those of
/// places in [-size, size), which are counted from the end where negative and come out in [0, size), too.
/// Throws DTypeError unless integers, IndexError naming the first that does not.
Tensor checked_indices(const char* op, const Tensor& index, int64_t dim, const Shape& shape);
Tensor checked_places(const char* op, const Tensor& index, int64_t dim, const Shape& shape);

/// The same without a range.
Tensor integer_indices(const char* op, const Tensor& index);

/// `dim` in [0, rank) of a tensor that has dimensions. Throws ShapeError, IndexError.
std::size_t index_dim(const char* op, int64_t dim, const Tensor& x);

}  // namespace pleat::ops
