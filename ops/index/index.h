#pragma once

#include <optional>
#include <vector>

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/index/bins.h"
#include "pleat/ops/index/sort.h"

/// Elements found by their indices; differentiable. Indices have no gradients and are of any integer type;
/// each is checked before anything is written: IndexError names the first one outside its range. Floating or
/// bool indices throw DTypeError. Dimensions may be negative, counting from the end, and so may indices, but
/// for those of `embedding` and `one_hot`. On CUDA the check makes the host wait for the work before it. A
/// tensor of rank 0 counts as one of a single element along a dimension 0, and so does an index.

namespace pleat {

/// y[i][j][k] = x[index[i][j][k]][j][k] for dim = 0, and so on for the others: one index for each element of
/// the result. `index` has x's rank and, except along `dim`, sizes of at most x's. Throws ShapeError.
Tensor gather(const Tensor& x, Integer dim, const Tensor& index);
/// The adjoint: a copy of x with source[i][j][k] added at [index[i][j][k]][j][k]. `source` has index's shape.
/// What goes to one place is added in the order of `dim`, in float32 for half types. The result has x's type.
/// Throws ShapeError, DTypeError for bool.
Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// A copy of x with source[i][j][k] written to [index[i][j][k]][j][k]. `source` has index's shape and x's
/// type. Of several that go to one place, the last in the order of `dim` stands, for any number of threads;
/// one that is overwritten gets no gradient. Throws ShapeError, DTypeError.
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// The same with one value for all. Throws ShapeError, DTypeError when x's type cannot hold its category.
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Scalar value);

/// The elements with these indices along `dim`: that dimension becomes index's length. `index` has rank 1.
/// Keeps the order of dimensions in memory. Throws ShapeError.
Tensor index_select(const Tensor& x, Integer dim, const Tensor& index);
/// The adjoint: a copy of x with the elements of `source` added at these indices along `dim`, in their order,
/// in float32 for half types. The result has x's type. Throws ShapeError, DTypeError for bool.
Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// A copy of x with the slices of `source`, which is as index_select would give it, or broadcasts to that,
/// and has x's type, at the indices along `dim`. Of several at one index the last stands; the gradient of the
/// others is 0. Throws ShapeError, DTypeError.
Tensor index_copy(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// A copy of x with `value` at these indices.
Tensor index_fill(const Tensor& x, Integer dim, const Tensor& index, Scalar value);

/// x[i, j] = values, or += with `accumulate`: `index_put(x, {i, j}, values)`, `index_put(x, {mask}, 0)`. The
/// indices name places along the first dimensions together and broadcast to one shape; or they are one mask
/// (bool) of the first dimensions. The values have x's type and broadcast to the shape of x[i, j]; what goes
/// to one place is written (the last stands) or added in the order of the indices. Throws ShapeError,
/// DTypeError.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 Flag accumulate = false);
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, Scalar value, Flag accumulate = false);

/// The elements where `mask` (bool, broadcast with x) is true, in row-major order: rank 1. Throws DTypeError.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The indices of all elements that are not 0, in row-major order: int64 [number, rank].
Tensor nonzero(const Tensor& x);

/// In place. They return `x`. A slice is written with copy_(slice(x, 0, 1, 3), values).
const Tensor& scatter_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
const Tensor& scatter_add_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
const Tensor& index_add_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
const Tensor& index_copy_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
const Tensor& index_fill_(const Tensor& x, Integer dim, const Tensor& index, Scalar value);
const Tensor& index_put_(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                         Flag accumulate = false);
const Tensor& index_put_(const Tensor& x, const std::vector<Tensor>& indices, Scalar value,
                         Flag accumulate = false);

struct EmbeddingOptions {
  /// The row that gets no gradient; may be negative, counting from the end.
  std::optional<int64_t> padding_idx;
};
/// Rows of weight [rows, width] for indices of any shape: [...] -> [..., width]. The gradient of a row is the
/// sum over its uses, in their order. Throws ShapeError, IndexError.
Tensor embedding(const Tensor& index, const Tensor& weight, EmbeddingOptions options = {});

struct OneHotOptions {
  /// Whether indices on a GPU are checked, for which the host waits; an index outside otherwise gives a row
  /// of zeros.
  bool check_index = true;
};
/// [...] -> [..., classes]: 1 at the index, else 0. -1 classes mean the largest index plus 1. Throws
/// ShapeError when there are then no indices, ValueError for less than -1.
Tensor one_hot(const Tensor& index, Integer classes = -1, DType dtype = int64, OneHotOptions options = {});

}  // namespace pleat
