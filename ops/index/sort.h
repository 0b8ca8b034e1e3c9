#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/reduce/reduce.h"

/// Order along one dimension. A NaN counts as larger than all numbers; equal elements keep their order, so
/// that results are the same everywhere. Elements are differentiable, the places where they were are not.

namespace pleat {

struct SortOptions {
  int64_t dim = -1;
  bool descending = false;
};
/// The elements along `dim` in order, and where each one was (int64). Throws IndexError.
ValuesIndices sort(const Tensor& x, SortOptions options = {});
/// The indices alone of `sort`: where the elements in order were (int64).
Tensor argsort(const Tensor& x, SortOptions options = {});

struct TopkOptions {
  int64_t dim = -1;
  bool largest = true;
};
/// The k largest (smallest) elements along `dim`, the most extreme first, and where each one was (int64).
/// Throws IndexError unless 0 <= k <= the size of `dim`.
ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options = {});

}  // namespace pleat
