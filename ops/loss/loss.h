#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/class_loss.h"
#include "pleat/ops/loss/pointwise_loss.h"

/// Differentiable losses before any reduction: one number for each target (ops/loss/). The losses that users
/// call are in nn/loss.h. Weights are constants.

namespace pleat {

/// -sum of share[c] log softmax(logits)[c] for class indices, or the mean of that. Differentiable by the
/// logits.
Tensor class_cross_entropies(const Tensor& logits, const Tensor& target, const Tensor& weight,
                             ClassLossOptions options = {});
/// -weight[t] x[t]. Differentiable by the log-probabilities.
Tensor nll_losses(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                  int64_t ignore_index = -100);

/// f(x - target), differentiable by both. `op` names the loss in errors and on the tape.
Tensor distance_losses(const char* op, const Tensor& x, const Tensor& target, ops::DistanceLoss loss);
/// -(pos_weight t log p + (1 - t) log(1 - p)), p = sigmoid(x). Differentiable by both.
Tensor binary_cross_entropies(const Tensor& x, const Tensor& target, const Tensor& pos_weight);

}  // namespace pleat
