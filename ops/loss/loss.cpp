#include "pleat/ops/loss/loss.h"

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/loss/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat {
namespace {

int64_t class_dim(const Tensor& logits) { return logits.rank() == 1 ? 0 : 1; }

}  // namespace

Tensor class_cross_entropies(const Tensor& input, const Tensor& target, const Tensor& weight,
                             ClassLossOptions options) {
  const Call call("cross_entropy", {input, target, weight}, {}, Autocasts::to_float32);
  const Tensor& logits = call.input(0);
  const ops::CrossEntropy y = ops::cross_entropy_forward(logits, target, weight, options);
  return call.result(
      y.losses,
      grad_of(logits, [logits = saved(logits), logsumexp = saved(y.logsumexp), target = saved(target),
                       weight = saved(weight), weight_sum = saved(y.weight_sum), options](const Tensor& dy) {
        if (!grad_enabled())
          return ops::cross_entropy_backward(dy, *logits, *logsumexp, *target, *weight, options, *weight_sum);
        const Tensor x = widened(*logits);
        const int64_t dim = class_dim(x);
        const Tensor shares = ops::class_shares(x, *target, *weight, options);
        // What does not count has no gradient, though dy be infinite: a mean over nothing.
        const Tensor counts = any(shares, dim, true);
        const Tensor slopes = widened(dy);
        const Tensor each = options.mean ? slopes / (*weight_sum).to(slopes.dtype()) : unsqueeze(slopes, dim);
        return where(counts, each * (softmax(x, dim) * sum(shares, dim, true) - shares), 0);
      }));
}

Tensor nll_losses(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index) {
  const Call call("nll_loss", {input, target, weight}, {}, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  return call.result(
      ops::nll_forward(x, target, weight, ignore_index),
      grad_of(x,
              [x = saved(x), target = saved(target), weight = saved(weight), ignore_index](const Tensor& dy) {
                if (!grad_enabled()) return ops::nll_backward(dy, *x, *target, *weight, ignore_index);
                const Tensor shares = ops::class_shares(*x, *target, *weight, {.ignore_index = ignore_index});
                return where(shares == 0, 0, unsqueeze(-dy, class_dim(*x)) * shares);
              }));
}

}  // namespace pleat
