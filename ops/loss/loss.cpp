#include "pleat/ops/loss/loss.h"

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat {
namespace {

int64_t class_dim(const Tensor& logits) { return logits.rank() == 1 ? 0 : 1; }

/// The derivative of a loss by the distance, in differentiable functions.
Tensor slope(const Tensor& distance, ops::DistanceLoss loss) {
  using Kind = ops::DistanceLoss::Kind;
  switch (loss.width == 0 && loss.kind == Kind::smooth_absolute ? Kind::absolute : loss.kind) {
    case Kind::squared:
      return distance * 2;
    case Kind::absolute:
      return masked_fill(sign(distance), isnan(distance), 0);
    case Kind::smooth_absolute:
      return clamp(distance / loss.width, {.min = -1, .max = 1});
    case Kind::huber:
      break;
  }
  return clamp(distance, {.min = -loss.width, .max = loss.width});
}

}  // namespace

Tensor class_cross_entropies(const Tensor& input, const Tensor& target, const Tensor& weight,
                             ClassLossOptions options) {
  const Tensor logits = autocast_to_float32(input);
  const ops::CrossEntropy y = ops::cross_entropy_forward(logits, target, weight, options);
  return record(
      "cross_entropy", y.losses,
      {grad_of(logits, [logits = saved(logits), logsumexp = saved(y.logsumexp), target = saved(target),
                        weight = saved(weight), weight_sum = saved(y.weight_sum), options](const Tensor& dy) {
        if (!grad_enabled())
          return ops::cross_entropy_backward(dy, *logits, *logsumexp, *target, *weight, options, *weight_sum);
        const Tensor x = widened(*logits);
        const int64_t dim = class_dim(x);
        const Tensor shares = ops::class_shares(x, *target, *weight, options);
        // What does not count has no gradient, though dy be infinite: a mean over nothing.
        const Tensor counts = ops::any(shares, dim, true);
        const Tensor slopes = widened(dy);
        const Tensor each = options.mean ? slopes / (*weight_sum).to(slopes.dtype()) : unsqueeze(slopes, dim);
        return where(counts, each * (softmax(x, dim) * sum(shares, dim, true) - shares), 0);
      })});
}

Tensor nll_losses(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index) {
  const Tensor x = autocast_to_float32(input);
  return record(
      "nll_loss", ops::nll_forward(x, target, weight, ignore_index),
      {grad_of(
          x, [x = saved(x), target = saved(target), weight = saved(weight), ignore_index](const Tensor& dy) {
            if (!grad_enabled()) return ops::nll_backward(dy, *x, *target, *weight, ignore_index);
            const Tensor shares = ops::class_shares(*x, *target, *weight, {.ignore_index = ignore_index});
            return where(shares == 0, 0, unsqueeze(-dy, class_dim(*x)) * shares);
          })});
}

Tensor distance_losses(const char* op, const Tensor& input, const Tensor& any_target,
                       ops::DistanceLoss loss) {
  const Tensor x = autocast_to_float32(input);
  const Tensor target = autocast_to_float32(any_target);
  return record(
      op, ops::distance_loss(op, x, target, loss), {x, target},
      [op, x = saved(x), target = saved(target), loss](const Tensor& dy, const Needs& needs) -> Grads {
        const Tensor dx = grad_enabled() ? widened(dy) * slope(widened(*x) - widened(*target), loss)
                                         : ops::distance_loss_backward(op, dy, *x, *target, loss);
        return {dx, needs[1] ? -dx : Tensor()};
      });
}

Tensor binary_cross_entropies(const Tensor& input, const Tensor& any_target, const Tensor& any_weight) {
  const Tensor x = autocast_to_float32(input);
  const Tensor target = autocast_to_float32(any_target);
  const Tensor pos_weight = autocast_to_float32(any_weight);
  const auto positive = [options =
                             TensorOptions{.dtype = x.dtype(), .device = x.device()}](const Saved& weight) {
    return (*weight).defined() ? widened(*weight) - 1 : zeros({}, options);
  };
  return record(
      "bce_with_logits", ops::binary_cross_entropy(x, target, pos_weight),
      {grad_of(
           x,
           [x = saved(x), target = saved(target), weight = saved(pos_weight), positive](const Tensor& dy) {
             if (!grad_enabled()) return ops::binary_cross_entropy_backward(dy, *x, *target, *weight);
             const Tensor t = widened(*target);
             return widened(dy) * ((1 - t) - (positive(weight) * t + 1) * sigmoid(-widened(*x)));
           }),
       grad_of(target, [x = saved(x), weight = saved(pos_weight), positive](const Tensor& dy) {
         if (!(*weight).defined()) return -(dy * *x);
         const Tensor wide = widened(*x);
         // log(1 + exp(-x)) without overflow.
         const Tensor softplus = log1p(exp(-abs(wide))) + relu(-wide);
         return widened(dy) * (positive(weight) * softplus - wide);
       })});
}

}  // namespace pleat
