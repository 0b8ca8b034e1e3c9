#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/loss.h"

/// Losses: how far an input is from its target, differentiable.
///
/// They throw ShapeError for shapes that do not fit, DTypeError for types they do not take,
/// ValueError for invalid options.

namespace pleat {

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

struct ProbabilityLossOptions {
  Tensor weight = {};  ///< of each element; broadcasts to the input's shape
  Reduction reduction = Reduction::mean;
};
/// -weight (t log p + (1 - t) log(1 - p)) of probabilities p and targets t in [0, 1], of equal shapes;
/// logarithms below -100 count as -100. NaN for a p outside of [0, 1]. bce_with_logits is more exact.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const ProbabilityLossOptions& options = {});

struct GaussianNllOptions {
  bool full = false;  ///< with the constant log(2 pi) / 2
  double eps = 1e-6;  ///< above 0: smaller variances count as it, their gradient being the one there
  Reduction reduction = Reduction::mean;
};
/// (log(v) + (input - target)^2 / v) / 2 with v = max(var, eps) (Nix and Weigend, 1994). Input and target
/// broadcast. `var` is one number, or has the input's shape, with sizes of 1 in the places of others, or
/// without the last dimension. Throws ValueError for a negative variance; on a GPU the host waits for that
/// check.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         GaussianNllOptions options = {});

struct PoissonNllOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< with Stirling's t log t - t + log(2 pi t) / 2 for targets t above 1
  double eps = 1e-8;      ///< above 0, added to a rate before its logarithm is taken
  Reduction reduction = Reduction::mean;
};
/// exp(input) - target input, or input - target log(input + eps) of rates; of equal shapes.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, PoissonNllOptions options = {});

struct FocalLossOptions {
  double alpha = 0.25;  ///< in [0, 1]: weight of the positive class; -1: no weights
  double gamma = 2;     ///< at least 0: how little examples that are easy count
  Reduction reduction = Reduction::none;
};
/// alpha_t (1 - p_t)^gamma times bce_with_logits, with p_t the probability of the target and alpha_t = alpha
/// t + (1 - alpha)(1 - t), of logits and targets in [0, 1] of one shape (Lin et al., "Focal loss for dense
/// object detection", 2017). Options and defaults are torchvision's.
Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, FocalLossOptions options = {});

struct DiceLossOptions {
  double smooth = 1;  ///< at least 0
  Reduction reduction = Reduction::mean;
};
/// 1 - (2 sum p t + smooth) / (sum p + sum t + smooth), summed over all but the first dimension, for
/// probabilities p and targets t in [0, 1] of one shape [N, ...]: one loss for each of N (Milletari et al.,
/// "V-Net", 2016, with sums in the place of their sums of squares).
Tensor dice_loss(const Tensor& input, const Tensor& target, DiceLossOptions options = {});

struct MarginLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};
/// max(-target (a - b) + margin, 0) with targets 1 (a should be the larger) or -1; the three broadcast.
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                           MarginLossOptions options = {});
/// 1 - c where the target is 1, max(c - margin, 0) where it is -1, c being the cosine of the angle between a
/// and b [N, D] or [D]; targets [N] or [].
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                             MarginLossOptions options = {});

struct HingeEmbeddingOptions {
  double margin = 1;
  Reduction reduction = Reduction::mean;
};
/// The input, a distance, where the target is 1, max(margin - input, 0) where it is -1; of equal shapes.
/// Differentiable by the input.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, HingeEmbeddingOptions options = {});

/// log(1 + exp(-target input)) with targets 1 or -1, of equal shapes.
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, LossOptions options = {});

/// The mean of bce_with_logits over the classes, which are the last dimension of the equal shapes [..., C];
/// weights [C] are of the classes.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const ProbabilityLossOptions& options = {});

struct MultiMarginOptions {
  int64_t p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< [C], of each class; 1 when undefined
  Reduction reduction = Reduction::mean;
};
/// sum over classes c other than the target t of weight[t] max(margin - input[t] + input[c], 0)^p, over C,
/// for an input [N, C] and class indices [N], or [C] and [], or [] of one class. The mean is plain. Throws
/// IndexError for an index outside.
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& options = {});

struct TripletMarginOptions {
  double margin = 1;
  double p = 2;       ///< of the norm of differences
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< the negative's distance is that to the positive where this is smaller
  Reduction reduction = Reduction::mean;
};
/// max(d(anchor, positive) - d(anchor, negative) + margin, 0) with pairwise_distance d over the last
/// dimension; the three broadcast (Balntas et al., "Learning local feature descriptors with triplets", 2016).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           TripletMarginOptions options = {});

}  // namespace pleat
