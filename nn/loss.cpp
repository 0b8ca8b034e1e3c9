#include "pleat/nn/loss.h"

#include <algorithm>
#include <cmath>

#include "pleat/autograd/autocast.h"
#include "pleat/core/base/format.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/reduced_loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/loss/kernels.h"
#include "pleat/ops/loss/loss.h"
#include "pleat/ops/loss/loss_formulas.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat {

Tensor floating_loss_input(const Tensor& x) {
  return is_floating(x.dtype()) ? autocast_to_float32(x) : x.to(float32);
}

namespace {

using nn::detail::check_options;

/// The mean of class losses divides by the sum of the targets' weights.
Tensor reduced_by_weight(const Tensor& losses, const Tensor& logits, const Tensor& target,
                         const Tensor& weight, int64_t ignore_index, Reduction reduction) {
  if (reduction != Reduction::mean) return reduced(losses, reduction);
  return sum(losses) / sum(ops::target_weights(logits, target, weight, ignore_index)).to(losses.dtype());
}

Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& probabilities,
                                      const CrossEntropyOptions& options) {
  const Tensor target = autocast_to_float32(probabilities);
  check<DTypeError>(is_floating(logits.dtype()), "cross_entropy: the input must be floating, got {}", logits);
  check<ShapeError>(logits.rank() >= 1, "cross_entropy: the input must be [C] or [N, C, ...], got {}",
                    logits);
  check<ShapeError>(
      target.shape() == logits.shape(),
      "cross_entropy: a floating target holds probabilities and must have the input's shape, got input {} "
      "and target {}; class indices are integers",
      logits, target);
  const int64_t dim = logits.rank() == 1 ? 0 : 1;
  const int64_t classes = logits.size(dim);
  const double smoothing = options.label_smoothing;
  check_options({"cross_entropy"}, options);
  Tensor shares = target;
  if (smoothing > 0) shares = shares * (1 - smoothing) + smoothing / static_cast<double>(classes);
  if (options.weight.defined()) {
    check<ShapeError>(options.weight.shape() == Shape{classes},
                      "cross_entropy: the weight must be [{}], one number for each class, got {}", classes,
                      options.weight);
    Shape along(logits.shape().size(), 1);
    along[static_cast<std::size_t>(dim)] = classes;
    shares = shares * reshape(options.weight, along);
  }
  return reduced(-sum(log_softmax(logits, dim) * shares, dim), options.reduction);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  if (is_floating(target.dtype())) return cross_entropy_of_probabilities(logits, target, options);
  const bool mean = options.reduction == Reduction::mean;
  const Tensor losses = class_cross_entropies(logits, target, options.weight,
                                              {.ignore_index = options.ignore_index,
                                               .label_smoothing = options.label_smoothing,
                                               .check_target = options.check_target,
                                               .mean = mean});
  return mean ? losses : reduced(losses, options.reduction);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NllOptions& options) {
  const Tensor losses = nll_losses(input, target, options.weight, options.ignore_index);
  return reduced_by_weight(losses, input, target, options.weight, options.ignore_index, options.reduction);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, LossOptions options) {
  const auto loss = [&](const Tensor& a, const Tensor& b) {
    return distance_losses("mse_loss", a, b, {DistanceLoss::Kind::squared}, options.reduction);
  };
  if (options.reduction != Reduction::mean || !is_half(promote(input.dtype(), target.dtype())) ||
      input.device().is_cuda())
    return loss(input, target);
  check_pair("mse_loss", input, target);
  // A half type may have no room for the squares of which it has the mean.
  const Tensor a = floating_loss_input(input), b = floating_loss_input(target);
  return loss(a.to(float32), b.to(float32)).to(promote(a.dtype(), b.dtype()));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, LossOptions options) {
  return distance_losses("l1_loss", input, target, {DistanceLoss::Kind::absolute}, options.reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, SmoothL1Options options) {
  check_options({"smooth_l1_loss"}, options);
  return distance_losses("smooth_l1_loss", input, target, {DistanceLoss::Kind::smooth_absolute, options.beta},
                         options.reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, HuberOptions options) {
  check_options({"huber_loss"}, options);
  return distance_losses("huber_loss", input, target, {DistanceLoss::Kind::huber, options.delta},
                         options.reduction);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options) {
  for (const Tensor& weight : {options.weight, options.pos_weight})
    check<ShapeError>(
        !weight.defined() || broadcast(logits.shape(), weight.shape(), "bce_with_logits") == logits.shape(),
        "bce_with_logits: the weight {} does not broadcast to the input {}", weight, logits);
  if (!options.weight.defined())
    return binary_cross_entropies(logits, target, options.pos_weight, options.reduction);
  return reduced(binary_cross_entropies(logits, target, options.pos_weight) * options.weight,
                 options.reduction);
}

Tensor kl_div(const Tensor& any_input, const Tensor& any_target, KlDivOptions options) {
  check_pair("kl_div", any_input, any_target);
  if (const Tensor y = divergences(any_input, any_target, options.log_target, options.reduction); y.defined())
    return y;
  const Tensor input = floating_loss_input(any_input), target = floating_loss_input(any_target);
  if (options.log_target) return reduced(exp(target) * (target - input), options.reduction);
  const Tensor positive = masked_fill(target, target == 0, 1);
  return reduced(target * (log(positive) - input), options.reduction);
}

}  // namespace pleat
