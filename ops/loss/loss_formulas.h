// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/loss.h"

/// Losses of single elements as formulas of two tensors (pointwise.h): values, gradients by both, of any
/// order. The losses that users call are in nn/loss.h.

namespace pleat {

/// Throws ShapeError unless both have one shape.
void check_pair(const char* op, const Tensor& input, const Tensor& target);

/// Losses of elements or targets, reduced.
Tensor reduced(const Tensor& losses, Reduction reduction);

// Of pairs of elements (else check_pair throws), reduced: on a GPU, of types that are computed in float32, in
// the launch that computes them.

/// exp(t) (t - x) with `log_target`, else t (log t - x); undefined where functions on the tape are as good:
/// not on a GPU, nor of half types, which each of those would round to.
Tensor divergences(const Tensor& x, const Tensor& target, bool log_target, Reduction reduction);
/// -(t log p + (1 - t) log(1 - p)), logarithms being at least -100.
Tensor probability_cross_entropies(const Tensor& p, const Tensor& target, Reduction reduction);
/// log(1 + exp(-t x)).
Tensor soft_margin_losses(const Tensor& x, const Tensor& target, Reduction reduction);
/// x where t is 1, max(margin - x, 0) where it is -1; both for another t.
Tensor hinge_embedding_losses(const Tensor& x, const Tensor& target, double margin, Reduction reduction);
/// Focal losses of logits; without weights of the classes for a negative alpha.
Tensor focal_losses(const Tensor& x, const Tensor& target, double alpha, double gamma, Reduction reduction);

}  // namespace pleat
