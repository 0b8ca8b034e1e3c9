#pragma once

#include <cstdint>
#include <span>

#include "pleat/core/number.h"
#include "pleat/core/tensor.h"

/// Elements found by their indices. Indices are of any integer type; each is checked before anything is
/// written: IndexError names the first one outside its range. Floating or bool indices throw DTypeError.
/// Dimensions may be negative, counting from the end, and so may indices, but for those of `embedding`,
/// `one_hot` and `take_rows`. On CUDA the check makes the host wait for the work before it.

namespace pleat::ops {

/// y[i][j][k] = x[index[i][j][k]][j][k] for dim = 0, and so on for the others: one index for each element of
/// the result. `index` has x's rank and, except along `dim`, sizes of at most x's. Throws ShapeError.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

/// The adjoint: a copy of x with source[i][j][k] added at [index[i][j][k]][j][k]. `source` has index's shape.
/// What goes to one place is added in the order of `dim`, in float32 for half types. The result has x's type.
/// Throws ShapeError, DTypeError for bool.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// A copy of x with source[i][j][k] written to [index[i][j][k]][j][k] for dim = 0, and so on for the others.
/// `source` has index's shape and x's type. Of several that go to one place, the last in the order of `dim`
/// stands, for any number of threads. Throws ShapeError, DTypeError.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// The same with one value for all. Throws ShapeError, DTypeError when x's type cannot hold its category.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);

/// The elements with these indices along `dim`: that dimension becomes index's length. `index` has rank 1.
/// Keeps the order of dimensions in memory; along the outermost dimension, rows are copied whole. Throws
/// ShapeError.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);

/// x's elements with these indices along dimension 0, row-major. The indices are the host's, so that they are
/// checked without waiting for a GPU. Throws ShapeError for rank 0.
Tensor take_rows(const Tensor& x, std::span<const int64_t> indices);

/// The adjoint: a copy of x with the elements of `source` added at these indices along `dim`, in their order,
/// in float32 for half types. The result has x's type. Throws ShapeError, DTypeError for bool.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// Rows of weight [rows, width] for indices of any shape: [...] -> [..., width]. Throws ShapeError.
Tensor embedding(const Tensor& index, const Tensor& weight);

/// [...] -> [..., classes]: 1 at the index, else 0. A negative number of classes means the largest index
/// plus 1. Throws ShapeError when there are then no indices.
Tensor one_hot(const Tensor& index, Integer classes = -1, DType dtype = int64);

/// The indices of all elements that are not 0, in row-major order: int64 [number, rank].
Tensor nonzero(const Tensor& x);
/// The same as places in row-major order: int64 [number].
Tensor flat_nonzero(const Tensor& x);
/// The elements where `mask` (bool, broadcast with x) is true, in row-major order: rank 1. Throws DTypeError.
Tensor masked_select(const Tensor& x, const Tensor& mask);

}  // namespace pleat::ops
