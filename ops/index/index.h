#pragma once

#include <optional>
#include <vector>

#include "pleat/ops/index/bins.h"
#include "pleat/ops/index/index_kernels.h"
#include "pleat/ops/index/sort.h"

/// Differentiable choice by indices; see ops/index/ for what each does. Indices have no gradients.

namespace pleat {

Tensor gather(const Tensor& x, Integer dim, const Tensor& index);
Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// A copy of x with source[i][j][k] at [index[i][j][k]][j][k]. One that is overwritten gets no gradient.
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Scalar value);
Tensor index_select(const Tensor& x, Integer dim, const Tensor& index);
Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// The elements where `mask` (bool, broadcast with x) is true, in row-major order: rank 1. Throws DTypeError.
Tensor masked_select(const Tensor& x, const Tensor& mask);

/// A copy of x with the slices of `source`, which broadcasts, at the indices along `dim`. The gradient of one
/// that a later one overwrites is 0.
Tensor index_copy(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& x, Integer dim, const Tensor& index,
                  Scalar value);  ///< a copy of x with `value` at these indices
/// x[i, j] = values, or += with `accumulate`: `index_put(x, {i, j}, values)`, `index_put(x, {mask}, 0)`.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 Flag accumulate = false);
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, Scalar value, Flag accumulate = false);

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

/// The elements along `dim` in order (sort), or the k largest or smallest of them (topk), and their places.
ValuesIndices sort(const Tensor& x, SortOptions options = {});
ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options = {});

using ops::argsort;
using ops::bincount;
using ops::nonzero;
using ops::one_hot;
using ops::searchsorted;

}  // namespace pleat
