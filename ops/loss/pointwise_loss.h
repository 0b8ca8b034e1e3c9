#pragma once

#include "pleat/core/tensor/tensor.h"

/// Raw losses of an input and a target of one shape, one number for each element. Types are promoted;
/// integers count as float32. All throw ShapeError unless the shapes are equal: a [N, 1] beside a [N] is more
/// often a mistake than meant.

namespace pleat::ops {

/// f(x - t), by the distance d:
struct DistanceLoss {
  enum class Kind {
    squared,          ///< d^2
    absolute,         ///< |d|; derivative 0 at 0
    smooth_absolute,  ///< d^2 / (2 width) for |d| < width, else |d| - width / 2; width 0 is `absolute`
    huber,            ///< d^2 / 2 for |d| < width, else width (|d| - width / 2)  (Huber, 1964)
  };
  Kind kind;
  double width = 1;
};
Tensor distance_loss(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss);
/// dy f'(x - t): the gradient of x; that of the target is its negative. dy may be expanded.
Tensor distance_loss_backward(const char* op, const Tensor& dy, const Tensor& x, const Tensor& target,
                              DistanceLoss loss);

/// -(pos_weight t log p + (1 - t) log(1 - p)), p = sigmoid(x), without overflow. `pos_weight` (undefined: 1)
/// broadcasts.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& pos_weight);
/// dy times its derivative by x.
Tensor binary_cross_entropy_backward(const Tensor& dy, const Tensor& x, const Tensor& target,
                                     const Tensor& pos_weight);

}  // namespace pleat::ops
