#pragma once

#include "pleat/core/tensor/tensor.h"

/// Softmax along one dimension, for any strides; the largest element is taken off first, so that nothing
/// overflows. Sums are taken in float64. Integers and bool count as float32. All throw IndexError for a
/// dimension out of range.

namespace pleat {

/// exp(x) / sum of exp(x) along `dim`. NaN where all elements are -infinity.
Tensor softmax(const Tensor& x, Integer dim);
/// x - log(sum of exp(x)) along `dim`.
Tensor log_softmax(const Tensor& x, Integer dim);
/// softmax(-x): the smallest gets the most.
Tensor softmin(const Tensor& x, Integer dim);

}  // namespace pleat
