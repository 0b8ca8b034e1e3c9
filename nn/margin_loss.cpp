#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/reduced_loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/loss/loss.h"
#include "pleat/ops/loss/loss_formulas.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

/// Losses that are 0 beyond a margin.

namespace pleat {
namespace {

using nn::detail::check_options;

Tensor above_0(const Tensor& x) { return clamp(x, {.min = 0}); }

void check_class_weight(const char* op, const Tensor& weight, int64_t classes) {
  check<ShapeError>(!weight.defined() || weight.shape() == Shape{classes},
                    "{}: the weight must be [{}], one number for each class, got {}", op, classes, weight);
}

}  // namespace

Tensor margin_ranking_loss(const Tensor& any_a, const Tensor& any_b, const Tensor& any_target,
                           MarginLossOptions options) {
  constexpr const char* op = "margin_ranking_loss";
  check_options({op}, options);
  (void)broadcast(broadcast(any_a.shape(), any_b.shape(), op), any_target.shape(), op);
  const RecordOp range(op, any_a, any_b, any_target);
  const Tensor a = floating_loss_input(any_a), b = floating_loss_input(any_b);
  return reduced(above_0(floating_loss_input(any_target) * (b - a) + options.margin), options.reduction);
}

Tensor cosine_embedding_loss(const Tensor& any_a, const Tensor& any_b, const Tensor& target,
                             MarginLossOptions options) {
  constexpr const char* op = "cosine_embedding_loss";
  constexpr double least = 1e-6;  // as in PyTorch: vectors of 0 have finite gradients
  check_options({op}, options);
  check_pair(op, any_a, any_b);
  check<ShapeError>((any_a.rank() == 1 || any_a.rank() == 2) && target.rank() == any_a.rank() - 1 &&
                        (target.rank() == 0 || target.size(0) == any_a.size(0)),
                    "{}: needs inputs [N, D] and targets [N], or [D] and [], got {} and {}", op, any_a,
                    target);
  const RecordOp range(op, any_a, any_b, target);
  // By lengths, as squares may have no room.
  const auto direction = [](const Tensor& given) {
    const Tensor x = given.to(compute_dtype(given.dtype()));
    return x /
           hypot(norm(x, -1, {.keepdim = true}), full({}, least, {.dtype = x.dtype(), .device = x.device()}));
  };
  const Tensor a = floating_loss_input(any_a), b = floating_loss_input(any_b);
  const Tensor cosine = sum(direction(a) * direction(b), -1);
  const Tensor losses =
      where(target == 1, 1 - cosine, 0) + where(target == -1, above_0(cosine - options.margin), 0);
  return reduced(losses, options.reduction).to(promote(a.dtype(), b.dtype()));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, HingeEmbeddingOptions options) {
  check_options({"hinge_embedding_loss"}, options);
  return hinge_embedding_losses(input, target, options.margin, options.reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, LossOptions options) {
  return soft_margin_losses(input, target, options.reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const ProbabilityLossOptions& options) {
  constexpr const char* op = "multilabel_soft_margin_loss";
  check_pair(op, input, target);
  check<ShapeError>(input.rank() >= 1, "{}: input and target must be [..., C], got {}", op, input);
  check_class_weight(op, options.weight, input.size(-1));
  const RecordOp range(op, input, target);
  const Tensor losses = binary_cross_entropies(input, target, {});
  return reduced(mean(options.weight.defined() ? losses * options.weight : losses, -1), options.reduction);
}

Tensor multi_margin_loss(const Tensor& any_input, const Tensor& target, const MultiMarginOptions& options) {
  constexpr const char* op = "multi_margin_loss";
  check<DTypeError>(is_floating(any_input.dtype()), "{}: the input must be floating, got {}", op, any_input);
  check<DTypeError>(!is_floating(target.dtype()) && target.dtype() != boolean,
                    "{}: the target must hold class indices, got {}", op, target);
  const int64_t samples = any_input.rank() == 2 ? any_input.size(0) : 1;
  check<ShapeError>(any_input.rank() <= 2 && target.rank() <= 1 && target.numel() == samples,
                    "{}: needs an input [N, C] and targets [N], or [C] and [], got {} and {}", op, any_input,
                    target);
  check_options({op}, options);
  const int64_t classes = any_input.rank() == 0 ? 1 : any_input.size(-1);
  check<ShapeError>(classes >= 1, "{}: the input has no classes, got {}", op, any_input);
  check_class_weight(op, options.weight, classes);
  const RecordOp range(op, any_input, target);
  const Tensor input = reshape(floating_loss_input(any_input), {samples, classes});
  const Tensor places = reshape(target.to(int64), {samples, 1});
  Tensor terms = above_0(input - gather(input, -1, places) + options.margin);
  if (options.p == 2) terms = square(terms);
  if (options.weight.defined())
    terms = terms * unsqueeze(index_select(options.weight, 0, flatten(places)), -1);
  const Tensor others = arange(classes, {.dtype = int64, .device = input.device()}) != places;
  const Tensor losses = sum(where(others, terms, 0), -1) / static_cast<double>(classes);
  return reduced(reshape(losses, target.shape()), options.reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           TripletMarginOptions options) {
  constexpr const char* op = "triplet_margin_loss";
  check_options({op}, options);
  (void)broadcast(broadcast(anchor.shape(), positive.shape(), op), negative.shape(), op);
  const RecordOp range(op, anchor, positive, negative);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, {.p = options.p, .eps = options.eps});
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return reduced(above_0(near - far + options.margin), options.reduction);
}

}  // namespace pleat
