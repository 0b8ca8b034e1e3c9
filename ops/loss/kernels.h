// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/loss.h"

/// Losses of class indices on any device, off the tape. Shapes, shares and errors are those of
/// class_cross_entropies (loss.h). On CUDA only cross_entropy_forward and nll_forward look for a target that
/// is no class, the former unless check_target is false; for the others it is one that is ignored.

namespace pleat::ops {

struct CrossEntropy {
  Tensor losses;      ///< of target's shape; with `mean` []
  Tensor logsumexp;   ///< of the logits over the classes, of target's shape: what backward needs besides the
                      ///< logits
  Tensor weight_sum;  ///< with `mean`: what it was divided by, [] float64
};
CrossEntropy cross_entropy_forward(const Tensor& logits, const Tensor& target, const Tensor& weight,
                                   ClassLossOptions options = {});
/// In one pass over the logits, from the gradient of the losses, or with `mean` from that of the mean and its
/// weight_sum.
Tensor cross_entropy_backward(const Tensor& dlosses, const Tensor& logits, const Tensor& logsumexp,
                              const Tensor& target, const Tensor& weight, ClassLossOptions options = {},
                              const Tensor& weight_sum = {});

/// -weight[t] x[t] from log-probabilities.
Tensor nll_forward(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                   int64_t ignore_index = -100);
/// Of `log_probabilities` only shape, type and memory order matter.
Tensor nll_backward(const Tensor& dlosses, const Tensor& log_probabilities, const Tensor& target,
                    const Tensor& weight, int64_t ignore_index = -100);

/// The shares above: of the logits' shape and type.
Tensor class_shares(const Tensor& logits, const Tensor& target, const Tensor& weight,
                    ClassLossOptions options = {});
/// weight[t] for each target, 0 for an ignored one, in the logits' type: their sum is what a mean is divided
/// by.
Tensor target_weights(const Tensor& logits, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index = -100);

}  // namespace pleat::ops
