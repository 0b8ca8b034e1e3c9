#pragma once

#include "pleat/core/tensor/tensor.h"

/// Where numbers fall among others.

namespace pleat {

struct BincountOptions {
  Tensor weights = {};    ///< of x's shape: each element counts as its weight; undefined: 1
  int64_t minlength = 0;  ///< of the result, at least
};
/// How often each integer from 0 to the largest of x [N] occurs: int64, or of the weights' type their sums,
/// in x's order. The host waits for the largest. Throws ShapeError, DTypeError unless x holds integers,
/// ValueError for a negative one or minlength.
Tensor bincount(const Tensor& x, const BincountOptions& options = {});

struct SearchsortedOptions {
  bool right = false;  ///< behind elements that are equal to the value, not in front of them
};
/// The place in `sorted` in front of which each value can be put so that it stays in order (int64): `sorted`
/// is [N], or [..., N] for values [..., M], in ascending order, which is not checked. NaN is put behind all.
/// Throws ShapeError, DTypeError unless both are of one type of numbers, DeviceError.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, SearchsortedOptions options = {});

}  // namespace pleat
