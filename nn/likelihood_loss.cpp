#include <algorithm>
#include <cmath>
#include <numbers>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/nn/loss_modules.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/reduced_loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/loss/loss_formulas.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

/// Losses that come from probabilities.

namespace pleat {
namespace {

/// The variances of `input`, so that they broadcast to it. PyTorch's rule, by which [N] belongs to [N, D].
Tensor variances_of(const char* op, const Tensor& input, const Tensor& var) {
  const Shape& shape = input.shape();
  const Shape& given = var.shape();
  if (!shape.empty() && std::equal(given.begin(), given.end(), shape.begin(), shape.end() - 1))
    return unsqueeze(var, -1);
  const bool fits =
      given.size() == shape.size() && std::equal(given.begin(), given.end(), shape.begin(),
                                                 [](int64_t a, int64_t b) { return a == b || a == 1; });
  check<ShapeError>(fits || (var.numel() == 1 && given.size() <= 1),
                    "{}: var must be one number, or have the input's shape, with sizes of 1 in the places of "
                    "others or without the last, got input {} and var {}",
                    op, input, var);
  return var;
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const ProbabilityLossOptions& options) {
  constexpr const char* op = "binary_cross_entropy";
  check_pair(op, input, target);
  const Tensor& weight = options.weight;
  check<ShapeError>(!weight.defined() || broadcast(input.shape(), weight.shape(), op) == input.shape(),
                    "{}: the weight {} does not broadcast to the input {}", op, weight, input);
  if (!weight.defined()) return probability_cross_entropies(input, target, options.reduction);
  return reduced(probability_cross_entropies(input, target, Reduction::none) * weight, options.reduction);
}

Tensor gaussian_nll_loss(const Tensor& any_input, const Tensor& any_target, const Tensor& any_var,
                         GaussianNllOptions options) {
  constexpr const char* op = "gaussian_nll_loss";
  (void)broadcast(any_input.shape(), any_target.shape(), op);
  nn::detail::check_options({op}, options);
  const Tensor fitting = variances_of(op, any_input, any_var);
  const RecordOp range(op, any_input, any_target, any_var);
  check<ValueError>(!no_grad([&] { return any(any_var < 0); }).item<bool>(), "{}: a variance is negative",
                    op);
  const Tensor input = floating_loss_input(any_input), target = floating_loss_input(any_target);
  const Tensor own_var = floating_loss_input(fitting);
  // What small variances lack is a constant, so that they have the gradient of eps.
  const Tensor var = own_var + no_grad([&] { return clamp(own_var, {.min = options.eps}) - own_var; });
  Tensor losses = (log(var) + square(input - target) / var) * 0.5;
  if (options.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, options.reduction);
}

Tensor poisson_nll_loss(const Tensor& any_input, const Tensor& any_target, PoissonNllOptions options) {
  constexpr const char* op = "poisson_nll_loss";
  check_pair(op, any_input, any_target);
  nn::detail::check_options({op}, options);
  const RecordOp range(op, any_input, any_target);
  const Tensor input = floating_loss_input(any_input), target = floating_loss_input(any_target);
  Tensor losses = options.log_input ? exp(input) - target * input : input - target * log(input + options.eps);
  if (options.full) {
    const Tensor large = target > 1;
    const Tensor t = where(large, target, 1);
    losses = losses + where(large, t * log(t) - t + log(t * (2 * std::numbers::pi)) * 0.5, 0);
  }
  return reduced(losses, options.reduction);
}

Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, FocalLossOptions options) {
  constexpr const char* op = "sigmoid_focal_loss";
  if (options.alpha != -1) check_share(op, "alpha", options.alpha);
  check_at_least_0(op, "gamma", options.gamma);
  return focal_losses(logits, target, options.alpha, options.gamma, options.reduction);
}

Tensor dice_loss(const Tensor& any_input, const Tensor& any_target, DiceLossOptions options) {
  constexpr const char* op = "dice_loss";
  check_pair(op, any_input, any_target);
  check<ShapeError>(any_input.rank() >= 2, "{}: input and target must be [N, ...], got {}", op, any_input);
  check_at_least_0(op, "smooth", options.smooth);
  const RecordOp range(op, any_input, any_target);
  const Tensor input = flatten(floating_loss_input(any_input), 1),
               target = flatten(floating_loss_input(any_target), 1);
  const Tensor common = sum(input * target, 1) * 2 + options.smooth;
  return reduced(1 - common / (sum(input, 1) + sum(target, 1) + options.smooth), options.reduction);
}

}  // namespace pleat
