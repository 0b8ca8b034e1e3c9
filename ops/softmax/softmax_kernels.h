#pragma once

#include "pleat/core/tensor/tensor.h"

/// Raw softmax and its derivative, along any dimension, for any strides; the largest element is taken off
/// first, so that nothing overflows. Sums are taken in float64. Integers and bool count as float32. All throw
/// IndexError for a dimension out of range.

namespace pleat::ops {

/// exp(x) / sum of exp(x) along `dim`. NaN where all elements are -infinity.
Tensor softmax(const Tensor& x, Integer dim);
/// x - log(sum of exp(x)) along `dim`.
Tensor log_softmax(const Tensor& x, Integer dim);

/// From y = softmax(x) and the gradient of y: dx = y (dy - sum of dy y). Shapes of y and dy must be equal
/// (ShapeError).
Tensor softmax_backward(const Tensor& dy, const Tensor& y, Integer dim);
/// From y = log_softmax(x): dx = dy - exp(y) sum of dy.
Tensor log_softmax_backward(const Tensor& dy, const Tensor& y, Integer dim);

}  // namespace pleat::ops
