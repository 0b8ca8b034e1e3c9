#pragma once

#include "pleat/core/tensor/tensor.h"

/// Raw losses of class indices, one number for each target.
///
/// Shapes: logits [N, C, d1, ...] and target [N, d1, ...], or logits [C] and target []; `weight` is [C] or
/// undefined (1 for each class). With s = label_smoothing, the classes of a target t have the shares
///   share[c] = (1 - s) weight[t] [c = t] + s / C weight[c]        (all 0 for a target that is ignore_index),
/// and the loss is -sum of share[c] log p[c], p = softmax(logits). With P = sum of shares, its gradient is P
/// p - share (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7).
///
/// All throw ShapeError for other shapes, DTypeError unless logits are floating and targets integers,
/// ValueError for a label_smoothing outside [0, 1], IndexError naming the first target that is neither in [0,
/// C) nor ignore_index. On CUDA only cross_entropy_forward and nll_forward look for such a target, and wait
/// for the device to do so, the former unless check_target is false; for the others it is one that is
/// ignored.

namespace pleat {

struct ClassLossOptions {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool check_target = true;  ///< whether to look for a wrong target on CUDA; on the CPU it always is
  /// Of cross entropy: the sum of the losses divided by that of the targets' weights, instead of each loss.
  bool mean = false;
};

}  // namespace pleat

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
