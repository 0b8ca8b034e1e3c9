// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

/// The work of index.h over the grid of the device. Indices are row-major int64 and checked. What meets in
/// one place is put in order by sorting, where the lines along the dimension are not short or many enough to
/// have a thread each: so nothing is added atomically, and sums are those of the CPU, to the bit.

namespace pleat::ops {

/// y is row-major.
void gather_on_grid(const Tensor& x, std::size_t dim, const Tensor& indices, const Tensor& y);
/// y has no gaps; source any strides.
void scatter_on_grid(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source);
/// The same. Half types are not added in: y is of a type that is computed in.
void scatter_add_on_grid(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source);

/// x [outer, rows, inner] and y [outer, indices, inner], both row-major.
void index_select_on_grid(const Tensor& x, const Tensor& indices, const Tensor& y, int64_t rows,
                          int64_t inner);
/// Adds values [outer, indices, inner] to y [outer, rows, inner], both row-major.
void index_add_on_grid(const Tensor& y, const Tensor& indices, const Tensor& values, int64_t rows,
                       int64_t inner);

/// y [..., classes], row-major.
void one_hot_on_grid(const Tensor& indices, int64_t classes, const Tensor& y);

/// The places where row-major flags (bool) are set.
Tensor places_on_grid(const char* op, const Tensor& flags);
/// y [places, rank], row-major: the places as coordinates in the shape.
void coordinates_on_grid(const char* op, const Tensor& places, const Shape& shape, const Tensor& y);

}  // namespace pleat::ops
