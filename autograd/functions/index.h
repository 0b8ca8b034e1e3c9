#pragma once

#include <optional>

#include "pleat/ops/index/index.h"
#include "pleat/ops/index/sort.h"

/// Differentiable choice by indices; see ops/index/ for what each does. Indices have no gradients.

namespace pleat {

Tensor gather(const Tensor& x, Integer dim, const Tensor& index);
Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
/// The gradient of a source element that a later one overwrites is 0.
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Scalar value);
Tensor index_select(const Tensor& x, Integer dim, const Tensor& index);
Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor masked_select(const Tensor& x, const Tensor& mask);

struct EmbeddingOptions {
  /// The row that gets no gradient; may be negative, counting from the end.
  std::optional<int64_t> padding_idx;
};

/// Rows of weight [rows, width] for indices of any shape: [...] -> [..., width]. The gradient of a row is the
/// sum over its uses, in their order. Throws ShapeError, IndexError.
Tensor embedding(const Tensor& index, const Tensor& weight, EmbeddingOptions options = {});

/// The gradient goes where the values came from.
ValuesIndices sort(const Tensor& x, SortOptions options = {});
ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options = {});

using ops::argsort;
using ops::nonzero;
using ops::one_hot;

}  // namespace pleat
