#pragma once

#include "pleat/core/tensor/tensor.h"

/// Losses: how far an input is from its target, differentiable.
///
/// They throw ShapeError for shapes that do not fit, DTypeError for types they do not take,
/// ValueError for invalid options.

namespace pleat {

/// How the losses of single elements or targets are reduced.
enum class Reduction {
  none,       ///< not reduced: one for each element or target
  mean,       ///< their mean; that of class losses is weighted
  sum,        ///< their sum
  batch_mean  ///< their sum divided by the size of the first dimension
};

struct CrossEntropyOptions {
  Tensor weight = {};           ///< [C], of each class; 1 when undefined
  int64_t ignore_index = -100;  ///< targets with this index are ignored
  double label_smoothing = 0;   ///< this share of each target is spread evenly over all classes
  Reduction reduction = Reduction::mean;
  /// Whether class indices on a GPU are checked, for which the host waits. False is for indices
  /// that were checked before, for example by a data set's reader. A wrong index is then ignored.
  bool check_target = true;
};
/// -log softmax(logits)[target] for logits [N, C, d1, ...] and class indices [N, d1, ...] of any integer
/// type; or [C] and []. Or, with a floating target of the logits' shape, the probabilities of the classes:
/// -sum of target log softmax(logits) over the classes. The mean over indices is weighted by the targets'
/// weights and leaves ignored ones out (so it is NaN when all are ignored); over probabilities it is the
/// plain mean over targets. Throws IndexError naming the first index that is neither in [0, C) nor
/// ignore_index.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// -input[target] of log-probabilities; shapes, mean and errors as cross_entropy's with class indices.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllOptions& options = {});

struct LossOptions {
  Reduction reduction = Reduction::mean;
};
/// (input - target)^2, of equal shapes.
Tensor mse_loss(const Tensor& input, const Tensor& target, LossOptions options = {});
/// |input - target|, of equal shapes.
Tensor l1_loss(const Tensor& input, const Tensor& target, LossOptions options = {});

struct SmoothL1Options {
  double beta = 1;  ///< >= 0: distances below are squared
  Reduction reduction = Reduction::mean;
};
/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target (Girshick, "Fast R-CNN",
/// 2015).
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, SmoothL1Options options = {});

struct HuberOptions {
  double delta = 1;  ///< > 0: distances below are squared
  Reduction reduction = Reduction::mean;
};
/// d^2 / 2 where |d| < delta, else delta (|d| - delta / 2), with d = input - target (Huber, 1964).
Tensor huber_loss(const Tensor& input, const Tensor& target, HuberOptions options = {});

struct BceOptions {
  Tensor weight = {};  ///< of each element; broadcasts to the input's shape
  /// Factor of the positive part, for recall against precision; broadcasts to the input's shape.
  Tensor pos_weight = {};
  Reduction reduction = Reduction::mean;
};
/// -weight (pos_weight t log p + (1 - t) log(1 - p)) with p = sigmoid(logits) and targets t in [0, 1], of
/// equal shapes.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});

struct KlDivOptions {
  bool log_target = false;  ///< the target holds log-probabilities, too
  Reduction reduction = Reduction::mean;
};
/// target (log(target) - input), of equal shapes, for an input of log-probabilities; 0 log 0 is 0. The
/// divergence of a batch is its `batch_mean`; `mean` divides by the number of classes as well.
Tensor kl_div(const Tensor& input, const Tensor& target, KlDivOptions options = {});

}  // namespace pleat
