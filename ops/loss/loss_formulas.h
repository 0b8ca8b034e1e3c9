// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/loss.h"

/// Losses of single elements as formulas of two tensors (pointwise.h): values, gradients by both, of any
/// order. The losses that users call, which check shapes, are in nn/loss.h.

namespace pleat {

/// Throws ShapeError unless both have one shape.
void check_pair(const char* op, const Tensor& input, const Tensor& target);

/// The sum or the mean of distance_losses (loss.h) in one launch, of the types' promoted one; undefined where
/// that is not on a GPU.
Tensor sum_of_distance_losses(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss,
                              bool mean);
/// -(t log p + (1 - t) log(1 - p)), logarithms being at least -100.
Tensor probability_cross_entropies(const Tensor& p, const Tensor& target);
/// log(1 + exp(-t x)).
Tensor soft_margin_losses(const Tensor& x, const Tensor& target);
/// x where t is 1, max(margin - x, 0) where it is -1; both for another t.
Tensor hinge_embedding_losses(const Tensor& x, const Tensor& target, double margin);
/// Focal losses of logits; without weights of the classes for a negative alpha.
Tensor focal_losses(const Tensor& x, const Tensor& target, double alpha, double gamma);

}  // namespace pleat
