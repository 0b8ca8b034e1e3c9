// Private header: not installed.
#pragma once

#include <span>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/reduce/reduce.h"

/// Elements found by their indices, on any device, off the tape; ops/index/index.h says what is computed, and
/// what is thrown. Those that end in _into write into the first tensor itself.

namespace pleat::ops {

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// A copy of x with source's elements. One that is expanded stands for equal ones.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
void scatter_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// Keeps the order of dimensions in memory; along the outermost dimension, rows are copied whole.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
void index_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
void index_copy_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// x's elements with these indices along dimension 0, row-major. The indices are the host's, so that they are
/// checked without waiting for a GPU. Throws ShapeError for rank 0, IndexError.
Tensor take_rows(const Tensor& x, std::span<const int64_t> indices);

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
void index_put_into(const Tensor& x, const IndexPlaces& places, const Tensor& values, bool accumulate);

/// The places, in row-major order, of all elements that are not 0: int64 [number].
Tensor flat_nonzero(const Tensor& x);

/// The first `k` elements along `dim` of x of rank 1 or more in order, and where each was (int64).
ValuesIndices sort_first(const char* op, const Tensor& x, int64_t dim, bool descending, int64_t k);

}  // namespace pleat::ops
