#pragma once

#include "pleat/core/tensor/tensor.h"

/// Losses, one number for each target or for each element unless a reduction is asked for; differentiable.
/// The losses that users call are in nn/loss.h. Weights are constants.

namespace pleat {

/// How the losses of single elements or targets are reduced.
enum class Reduction {
  none,       ///< not reduced: one for each element or target
  mean,       ///< their mean; that of class losses is weighted
  sum,        ///< their sum
  batch_mean  ///< their sum divided by the size of the first dimension
};

struct ClassLossOptions {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool check_target = true;  ///< whether to look for a wrong target on CUDA; on the CPU it always is
  /// Of cross entropy: the sum of the losses divided by that of the targets' weights, instead of each loss.
  bool mean = false;
};

/// -sum of share[c] log softmax(logits)[c] for class indices, or the mean of that. Logits are [N, C, d1, ...]
/// with a target [N, d1, ...], or [C] with a target []; `weight` is [C] or undefined (1 for each class). With
/// s = label_smoothing, the classes of a target t have the shares
///   share[c] = (1 - s) weight[t] [c = t] + s / C weight[c]        (all 0 for a target that is ignore_index).
/// With P = sum of shares and p = softmax(logits), the gradient is P p - share (Szegedy et al., "Rethinking
/// the Inception Architecture", 2016, section 7). Differentiable by the logits. Throws ShapeError for other
/// shapes, DTypeError unless logits are floating and targets integers, ValueError for a label_smoothing
/// outside [0, 1], IndexError naming the first target that is neither in [0, C) nor ignore_index; on CUDA the
/// host waits for that check.
Tensor class_cross_entropies(const Tensor& logits, const Tensor& target, const Tensor& weight,
                             ClassLossOptions options = {});
/// -weight[t] x[t]. Differentiable by the log-probabilities. Shapes and errors as above.
Tensor nll_losses(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                  int64_t ignore_index = -100);

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
/// f(x - target), differentiable by both. `op` names the loss in errors and on the tape. Types are promoted;
/// integers count as float32. Throws ShapeError unless the shapes are equal: a [N, 1] beside a [N] is more
/// often a mistake than meant.
Tensor distance_losses(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss,
                       Reduction reduction = Reduction::none);
/// -(pos_weight t log p + (1 - t) log(1 - p)), p = sigmoid(x). Without overflow; differentiable by both;
/// types and errors as above. `pos_weight` (undefined: 1) broadcasts.
Tensor binary_cross_entropies(const Tensor& x, const Tensor& target, const Tensor& pos_weight,
                              Reduction reduction = Reduction::none);

}  // namespace pleat
