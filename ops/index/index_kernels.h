#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Elements found by their indices. Indices are of any integer type; each is checked before anything is
/// written: IndexError names the first one outside its range. Floating or bool indices throw DTypeError.
/// Dimensions may be negative, counting from the end, and so may indices, but for those of `embedding`,
/// `one_hot` and `take_rows`. On CUDA the check makes the host wait for the work before it. A tensor of rank
/// 0 counts as one of a single element along a dimension 0, and so does an index.

namespace pleat::ops {

/// y[i][j][k] = x[index[i][j][k]][j][k] for dim = 0, and so on for the others: one index for each element of
/// the result. `index` has x's rank and, except along `dim`, sizes of at most x's. Throws ShapeError.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

/// The adjoint: a copy of x with source[i][j][k] added at [index[i][j][k]][j][k]. `source` has index's shape.
/// What goes to one place is added in the order of `dim`, in float32 for half types. The result has x's type.
/// Throws ShapeError, DTypeError for bool.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// The same in x itself.
void scatter_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

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
/// The same in x itself.
void index_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// A copy of x with the elements of `source` written at these indices along `dim`; of several at one index
/// the last stands. `source` is as index_select would give it, or broadcasts to that, and has x's type.
/// Throws ShapeError, DTypeError.
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// The same into x itself.
void index_copy_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// Where `x[i, j, ...]` of NumPy and PyTorch is: `indices` name places along the first dimensions together,
/// broadcasting to one shape. They are integers, negative ones counting from the end, or bool: a mask of
/// as many dimensions as it has, alone, which stands for the indices of what is true in it.
struct IndexPlaces {
  Tensor rows;   ///< int64 [number]: the places in row-major order of the dimensions that are named
  int64_t size;  ///< of these dimensions together
  Shape shape;   ///< of x[indices]: that of the indices, then the dimensions that are not named
};
/// Throws ShapeError, DTypeError, IndexError beginning with `op`.
IndexPlaces index_places(const char* op, const Shape& shape, const std::vector<Tensor>& indices);

/// A copy of x with `values` written, or with `accumulate` added, at x[indices]. They have x's type and
/// broadcast to the shape of x[indices]; what goes to one place is written (the last stands) or added in the
/// order of the indices. Throws as index_places does, and DTypeError.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 Flag accumulate = false);
Tensor index_put(const Tensor& x, const IndexPlaces& places, const Tensor& values, Flag accumulate = false);
/// The same into x itself.
void index_put_into(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                    Flag accumulate = false);

/// Rows of weight [rows, width] for indices of any shape: [...] -> [..., width]. Throws ShapeError.
Tensor embedding(const Tensor& index, const Tensor& weight);

/// [...] -> [..., classes]: 1 at the index, else 0. -1 classes mean the largest index plus 1. Throws
/// ShapeError when there are then no indices, ValueError for less than -1.
struct OneHotOptions {
  /// Whether indices on a GPU are checked, for which the host waits; an index outside otherwise gives a row
  /// of zeros.
  bool check_index = true;
};
Tensor one_hot(const Tensor& index, Integer classes = -1, DType dtype = int64, OneHotOptions options = {});

/// The indices of all elements that are not 0, in row-major order: int64 [number, rank].
Tensor nonzero(const Tensor& x);
/// The same as places in row-major order: int64 [number].
Tensor flat_nonzero(const Tensor& x);

}  // namespace pleat::ops
